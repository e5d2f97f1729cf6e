# The licence texts of what is linked in, from the PyPI distributions that the build uses, travel with the installed library.
if(SKBUILD)
  set(plm_license_dir ${SKBUILD_METADATA_DIR}/licenses)
else()
  set(plm_license_dir licenses)
endif()

function(plm_license distribution)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
      "import importlib.metadata as m, os, re; d = m.distribution('${distribution}'); print(';'.join(os.path.realpath(d.locate_file(f)) for f in d.files if re.match(r'(?i)(licen[cs]e|copying|third-party-programs).*', f.name)))"
    OUTPUT_VARIABLE files OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT files)
    message(FATAL_ERROR "${distribution} comes without a licence file; the wheel must carry one")
  endif()
  install(FILES ${files} DESTINATION ${plm_license_dir}/${distribution})
endfunction()

if(Python_EXECUTABLE AND NOT PLM_JSON_INCLUDE)
  plm_license(nlohmann-json)
endif()
if(PLM_BLAS STREQUAL "mkl")
  plm_license(mkl-static)
elseif(PLM_BLAS STREQUAL "openblas")
  plm_license(scipy-openblas32)
endif()
if(PLM_PYTHON)
  plm_license(nanobind)
endif()
