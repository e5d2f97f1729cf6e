#pragma once

#include <string>

#include "plmcore/error.h"
#include "plmcore/log.h"

namespace plmcore {

bool somebody_listens();
void tell(Level level, std::string_view text);

// tell(Level::info, "...", value, ...): the text is made only where somebody listens.
template <class... Parts>
void log(Level level, const Parts&... parts) {
  if (!somebody_listens()) return;
  std::string text;
  (append(text, parts), ...);
  tell(level, text);
}

}  // namespace plmcore
