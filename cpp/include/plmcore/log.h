// What the library has to tell an application, which decides where it goes. Nothing is printed by itself.
#pragma once

#include <functional>
#include <string_view>

namespace plmcore {

enum class Level { info, warning };
using Log = std::function<void(Level, std::string_view)>;

// Called from any thread, one call at a time. An empty function: nobody listens.
void set_log(Log log);

}  // namespace plmcore
