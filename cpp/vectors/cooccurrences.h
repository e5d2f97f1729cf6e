// How often words stand near each other: the sum of 1 / distance over pairs inside of a window, in lines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace plmcore::vectors {

struct Record {  // of a file of counts: ids from 1
  int32_t row, column;
  double value;
};

// Keeps its memory below a limit: pairs of frequent words are in a table, the others in a hash table that is
// sorted and written to a file, a run, when it is full. The runs are merged at the end.
class Cooccurrences {
 public:
  // Runs are files in `folder`, without names. symmetric: a pair counts for both orders, and is kept once.
  Cooccurrences(const std::string& folder, int64_t vocabulary, int64_t window, bool symmetric,
                int64_t memory);
  ~Cooccurrences();

  // Ids of a text, 0 at the end of a line; the line may go on in the next call.
  void add(const int32_t* ids, int64_t n);
  // Writes the records, by row and column; their number.
  int64_t write(const std::string& path);
  int64_t runs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plmcore::vectors
