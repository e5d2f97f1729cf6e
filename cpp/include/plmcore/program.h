// Program: a traced list of op calls over values, with symbolic sizes. It runs at any sizes that its guards
// allow.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plmcore/card.h"
#include "plmcore/tensor.h"

namespace plmcore {

class Program {
 public:
  struct Named {
    std::string name;
    Spec spec;
  };

  Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  const std::vector<Named>& inputs() const;
  const std::vector<Named>& outputs() const;
  // Inputs in the order of inputs(). Runs without recording gradients.
  Tensors run(const Tensors& inputs) const;
  std::string str() const;                       // one line per instruction
  size_t size() const;                           // instructions
  void to(Device& device);                       // moves the weights: it runs there from now on
  Device& device() const;                        // of the weights; the CPU where there are none

  struct Body;                                   // cpp/program/body.h
  Body& body() const { return *body_; }

 private:
  std::unique_ptr<Body> body_;
};

// A file with one or more programs and the weights they share: docs/program-format.md.
class Model {
 public:
  Model() = default;
  Model(Model&&) noexcept = default;
  Model& operator=(Model&&) noexcept = default;

  // Maps the file, which must not be cut short while it is in use, or reads it into memory; FormatError that
  // names what is wrong.
  static Model load(const std::string& path, bool mapped = true);
  // `card`: what the file says of the model, as JSON (the part "model" of the header), or nothing; `tensors`
  // that no program uses, by name: the card's.
  static void save(const std::string& path,
                   const std::vector<std::pair<std::string, const Program*>>& programs,
                   std::string_view card = {},
                   const std::vector<std::pair<std::string, Tensor>>& tensors = {});

  const Card& card() const { return card_; }
  void verify() const;                           // reads all weights: FormatError where a checksum differs
  void to(Device& device);                       // moves the weights of all programs
  std::vector<std::string> names() const;
  bool has(std::string_view name) const;
  const Program& program(std::string_view name) const;  // "main": the one that the card names so
  Tensors run(std::string_view name, const Tensors& inputs) const { return program(name).run(inputs); }
  Tensors run(const Tensors& inputs) const;      // "main", or the only one

 private:
  struct Sum {
    std::string name;
    uint64_t start, bytes;  // in the file
    uint32_t crc32;
  };
  std::vector<std::pair<std::string, Program>> programs_;
  Card card_;
  Ref<Storage> file_;
  std::vector<Sum> sums_;
};

}  // namespace plmcore
