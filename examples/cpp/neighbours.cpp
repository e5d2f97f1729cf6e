// Sentence embeddings: the lines of a file that are nearest to a text.
//   neighbours minilm.plm lines.txt "a text"
#include <plmcore/text.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <numeric>

int main(int argc, char** argv) try {
  if (argc != 4) return std::fprintf(stderr, "usage: neighbours MODEL.plm LINES.txt TEXT\n"), 2;
  const plmcore::Model model = plmcore::Model::load(argv[1]);
  const plmcore::Text text(model);
  plmcore::Session session(model);

  std::vector<std::string> lines = {argv[3]};
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) lines.push_back(line);
  std::vector<plmcore::Row> rows;
  for (const std::string& line : lines) rows.push_back(text.encode(line));
  const plmcore::Tensor vectors = session.encode(rows);  // [lines, C], pooled as the file says

  const int64_t C = vectors.size(1).value();
  const auto dot = [&](size_t i, size_t j) {
    const float *a = vectors.as<float>() + static_cast<int64_t>(i) * C,
                *b = vectors.as<float>() + static_cast<int64_t>(j) * C;
    return std::inner_product(a, a + C, b, 0.0);
  };
  std::vector<std::pair<double, size_t>> found;
  for (size_t i = 1; i < lines.size(); ++i)
    found.emplace_back(dot(0, i) / std::sqrt(dot(0, 0) * dot(i, i)), i);
  std::sort(found.rbegin(), found.rend());
  for (size_t k = 0; k < std::min<size_t>(3, found.size()); ++k)
    std::printf("%.4f  %s\n", found[k].first, lines[found[k].second].c_str());
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
