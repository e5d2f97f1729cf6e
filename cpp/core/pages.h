// Pages of mapped files, which a process holds as long as the system sees fit.
#pragma once

#include <cstddef>

namespace plmcore {

// Takes the pages of files that lie wholly in these bytes, and that nobody has written to, out of this
// process's memory. They are read again, from the system's cache, when somebody looks at them. Other memory
// stays as it is.
void release_file_pages(const void* data, size_t bytes);

}  // namespace plmcore
