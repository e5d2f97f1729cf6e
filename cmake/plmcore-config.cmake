# find_package(plmcore): the target plmcore::plmcore. Paths are relative to this file, so the folder may be moved.
include(${CMAKE_CURRENT_LIST_DIR}/plmcore-targets.cmake)
