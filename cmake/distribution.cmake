# The folder in which a Python distribution has a file: of "x.h" the one that holds it, of "y/x.h" the one that holds y.
function(plm_distribution_dir distribution file out)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
      "import importlib.metadata as m, os; d, end = m.distribution('${distribution}'), '/${file}'; print(next(os.path.realpath(d.locate_file(f))[: -len(end)] for f in d.files if ('/' + f.as_posix()).endswith(end)))"
    OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR "${distribution} is not installed for ${Python_EXECUTABLE}: pip install ${distribution}")
  endif()
  set(${out} ${dir} PARENT_SCOPE)
endfunction()

# A copy of that folder in the build folder, for headers: its dates change with its contents alone.
function(plm_distribution_mirror distribution file out)
  string(MAKE_C_IDENTIFIER ${file} name)
  set(mirror ${PROJECT_BINARY_DIR}/headers/${distribution}/${name})
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/mirror_distribution.py ${distribution} ${file} ${mirror}
    RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR "${distribution} is not installed for ${Python_EXECUTABLE}: pip install ${distribution}")
  endif()
  set(${out} ${mirror} PARENT_SCOPE)
endfunction()

# The folder itself through a link of a constant name in the build folder, for libraries: pip builds in a new environment each time, and with
# its paths in the commands everything would be linked again.
function(plm_distribution_link distribution file out)
  plm_distribution_dir(${distribution} ${file} dir)
  string(MAKE_C_IDENTIFIER ${file} name)
  set(link ${PROJECT_BINARY_DIR}/distributions/${distribution}/${name})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/distributions/${distribution})
  file(CREATE_LINK ${dir} ${link} SYMBOLIC)
  set(${out} ${link} PARENT_SCOPE)
endfunction()
