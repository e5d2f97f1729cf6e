// The part "model" of a program file's header.
#pragma once

#include "plmcore/card.h"
#include "program/header.h"
#include "program/json_reader.h"

namespace plmcore {

// `lenient`: of a later minor version, whose other members are skipped. The tensors that the tokenizer names
// are found in `header`, which gets the card.
void read_card(const Reader& r, bool lenient, Header& header);

}  // namespace plmcore
