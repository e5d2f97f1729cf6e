#include "bindings/bindings.h"

NB_MODULE(_core, m) {
  using namespace plmcore::bindings;
  m.attr("__version__") = PLM_VERSION;
  nb::set_implicit_cast_warnings(false);  // errors say what is wrong; nothing is printed
  nb::set_leak_warnings(false);  // tensors held by module globals outlive the interpreter's checks
  bind_errors(m);
  bind_dim(m);
  bind_tensor(m);
  bind_runtime(m);
  bind_autograd(m);
  bind_program(m);
  bind_generate(m);
  bind_session(m);
  bind_optim(m);
  nb::module_ ops = m.def_submodule("ops", "Every op as a function; shapes and maths are in each docstring.");
  bind_making(ops);
  bind_arithmetic(ops);
  bind_elementwise(ops);
  bind_reductions(ops);
  bind_products(ops);
  bind_shape(ops);
  bind_embedding(ops);
  bind_normalisation(ops);
  bind_dropout(ops);
  bind_attention(ops);
  bind_recurrent(ops);
  bind_rows(ops);
  bind_losses(ops);
  bind_generation(ops);
  bind_optimisers(ops);
  nb::module_ safetensors =
      m.def_submodule("safetensors", "Safetensors files; plmcore.safetensors is for users.");
  bind_safetensors(safetensors);
  nb::module_ text =
      m.def_submodule("text", "Text and rows of token ids, for plmcore.data and plmcore.objectives.");
  bind_text(text);
  nb::module_ vectors = m.def_submodule("vectors", "Trainers of word vectors, for plmcore.vectors.");
  bind_vectors(vectors);
  bind_kinds(m);
}
