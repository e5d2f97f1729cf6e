# The folder of a file that a Python distribution installed.
function(plm_distribution_dir distribution file out)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
      "import importlib.metadata as m, os; d = m.distribution('${distribution}'); print(next(os.path.dirname(os.path.realpath(d.locate_file(f))) for f in d.files if f.name == '${file}'))"
    OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR "${distribution} is not installed for ${Python_EXECUTABLE}: pip install ${distribution}")
  endif()
  set(${out} ${dir} PARENT_SCOPE)
endfunction()
