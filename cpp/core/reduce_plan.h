// How a sum over some axes of a contiguous array is walked. Axes of size 1 are dropped and neighbours of one
// kind merged; what is left is an innermost run, either summed or kept, and two lists of outer axes. Every
// number in it depends on the sizes alone.
#pragma once

#include "core/kernel_args.h"

namespace plmcore {

constexpr int64_t kSumSegment = 1 << 14;  // elements of a summed run that make one partial sum
constexpr int64_t kSumColumns = 1024;     // columns that a task sums together
constexpr int64_t kSumRows = 256;         // rows that are added up before they join the total

struct ReducePlan {
  struct Axes {
    int n = 0;
    int64_t size[Shape::kMaxRank], stride[Shape::kMaxRank], count = 1;
    // Element offset of position i, the last axis running fastest.
    int64_t offset(int64_t i) const {
      int64_t at = 0;
      for (int k = 0; k < n; ++k) {
        at += i % size[k] * stride[k];
        i /= size[k];
      }
      return at;
    }
    void add(int64_t axis, int64_t step) {
      size[n] = axis;
      stride[n++] = step;
      count *= axis;
    }
  };

  Axes kept, summed;       // outer axes, innermost first
  int64_t run = 1;         // elements of the innermost run
  bool run_summed = false;
  int64_t segments = 1;    // partial sums of one run that is summed
  int64_t chunks = 1;      // groups of the summed positions, if they are worth several tasks

  // Bit i of `axes`: axis i of x is summed.
  ReducePlan(const View& x, uint32_t axes) {
    int64_t stride = 1;
    bool first = true, previous = false;
    for (int i = x.rank - 1; i >= 0; --i) {
      if (x.size[i] == 1) continue;
      const bool s = axes >> i & 1;
      if (first) {
        run = x.size[i];
        run_summed = s;
      } else if (s == previous && kept.n + summed.n == 0) {
        run *= x.size[i];
      } else {
        Axes& list = s ? summed : kept;
        if (s == previous) {
          list.size[list.n - 1] *= x.size[i];
          list.count *= x.size[i];
        } else list.add(x.size[i], stride);
      }
      stride *= x.size[i];
      first = false;
      previous = s;
    }
    if (run_summed) {
      segments = (run + kSumSegment - 1) / kSumSegment;
      if (kept.count < 64 && segments * summed.count > 1) chunks = segments * summed.count;
    } else if (kept.count * column_blocks() < 16) chunks = row_chunks(summed.count);
  }
  int64_t column_blocks() const { return (run + kSumColumns - 1) / kSumColumns; }
  int64_t outputs() const { return run_summed ? kept.count : kept.count * run; }

  // Partial sums that wait for each other: [kept][chunks], or [kept][chunks][run].
  size_t workspace(DType dtype) const {
    if (chunks == 1) return 0;
    if (run_summed) return static_cast<size_t>(kept.count * chunks) * sizeof(double);
    return static_cast<size_t>(kept.count * chunks * run) *
           (dtype == DType::float64 ? sizeof(double) : sizeof(float));
  }
};

// The axes of x that a tensor of y's shape would be broadcast along.
inline uint32_t summed_axes(const View& x, const View& y) {
  uint32_t axes = 0;
  for (int i = 0; i < x.rank; ++i) {
    const int axis = i - (x.rank - y.rank);
    if (axis < 0 || (y.size[axis] == 1 && x.size[i] != 1)) axes |= 1u << i;
  }
  return axes;
}

}  // namespace plmcore
