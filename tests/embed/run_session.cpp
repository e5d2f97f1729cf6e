// Runs the files that make_sessions.py wrote, and compares with what it wrote down. No Python in this
// process.
//   run_session FOLDER
#include <plmcore/session.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <thread>

#include "expectations.h"

namespace {

using plmcore::DType;
using plmcore::Session;
using plmcore::Tensor;

std::string text(Bytes& file) {
  std::string found(static_cast<size_t>(file.integer()), ' ');
  file.read(found.data(), found.size());
  return found;
}

Session::Named tensors(Bytes& file, DType dtype) {
  Session::Named found;
  for (int64_t n = file.integer(); n > 0; --n) {
    const std::string name = text(file);
    plmcore::Shape shape;
    for (int64_t rank = file.integer(); rank > 0; --rank) shape.push_back(plmcore::Dim(file.integer()));
    const Tensor t = Tensor::empty(shape, dtype);
    file.read(t.data(), t.bytes());
    found[name] = t;
  }
  return found;
}

double difference(const Tensor& a, const Tensor& b) {
  if (!a.shape().matches(b.shape())) return INFINITY;
  double most = 0;
  for (int64_t i = 0; i < a.numel(); ++i)
    most = std::max(most, std::fabs(static_cast<double>(a.as<float>()[i]) - b.as<float>()[i]));
  return most;
}

bool forward(const plmcore::Model& model, Bytes& file) {
  Session session(model);
  for (int64_t cases = file.integer(); cases > 0; --cases) {
    const Session::Named inputs = tensors(file, DType::int64), expected = tensors(file, DType::float32);
    const Session::Named found = session.run("main", inputs);
    for (const auto& [name, y] : expected)
      if (!(difference(found.at(name).to(DType::float32), y) <= 1e-6)) return false;
  }
  return true;
}

bool generation(const plmcore::Model& model, Bytes& file) {
  for (int64_t cases = file.integer(); cases > 0; --cases) {
    plmcore::Options options = model.card().generation;
    options.beams = file.integer();
    options.sample = file.integer() != 0;
    options.seed = file.integer();
    options.top_k = file.integer();
    options.max_new_tokens = file.integer();
    options.eos = {2};
    const Rows prompts = rows(file), begun = rows(file), want = rows(file);
    const auto ran = [&](int threads) {
      Session session(model, threads);
      Rows found;
      for (const auto& each : session.generate(prompts, options, {}, begun)) found.push_back(each[0].tokens);
      return found;
    };
    if (ran(0) != want) return false;
    std::vector<Rows> found(8);  // sessions in threads share the weights
    std::vector<std::thread> threads;
    for (Rows& f : found) threads.emplace_back([&] { f = ran(1); });
    for (std::thread& t : threads) t.join();
    for (const Rows& f : found)
      if (f != want) return false;
  }
  return true;
}

int run(const std::string& folder) {
  std::ifstream list(folder + "/list.txt");
  int failed = 0, done = 0;
  for (std::string name; std::getline(list, name); ++done) {
    const plmcore::Model model = plmcore::Model::load(folder + "/" + name + ".plm");
    model.verify();
    Bytes file((folder + "/" + name + ".bin").c_str());
    if (name.ends_with("-gen") ? generation(model, file) : forward(model, file)) continue;
    std::printf("%s: other values than Python's\n", name.c_str());
    ++failed;
  }
  std::printf("%d files, %d failed\n", done, failed);
  return failed > 0 || done == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::printf("usage: run_session FOLDER\n"), 2;
  try {
    return run(argv[1]);
  } catch (const std::exception& e) {
    std::printf("error %d: %s\n", static_cast<int>(plmcore::code_of(e)), e.what());
    return 1;
  }
}
