// For each key, the elements shown by the list reads of a witness, with the writer of each element. They determine how
// the version order begins.
//
// All list reads of a key are prefixes of the longest one, so each element is visited once.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "certify/choice.hpp"
#include "certify/write_index.hpp"

namespace isolang::certify {

class ListReads {
 public:
  struct Element {
    std::int32_t writer;  // T0, or a transaction that may be included
    std::int32_t index;   // the index of this append among the writer's appends to the key
  };

  ListReads(const History& history, WriteIndex& writes, Budget& budget);

  std::span<const std::int32_t> values(std::int64_t op) const;  // the elements of the list; nil is the empty list

  // Adds the elements shown by the list read but by no earlier one, and returns them. Throws Rejected if the read is an
  // anomaly.
  std::span<const Element> show(std::int64_t op);
  // Checks the end of a list read by `t`, which has already made `own` appends to the key. The list must end with these
  // appends or, if there are none, at the end of another transaction's appends. Throws Rejected.
  void check_end(std::int32_t t, std::int64_t op, std::int32_t own) const;
  // Keeps a list read for the order although the specification does not judge what the read shows.
  void keep(std::int64_t op) { unjudged_.push_back(op); }

  // Returns the only transaction that an external list read by `t` may read from, or -1 if there is none.
  std::int32_t candidate(std::int32_t t, std::int64_t op) const;

  // Checks that the version orders contain the orders of the lists given to `show` and `keep`. Throws Rejected.
  void check_orders(const Choice& choice) const;

 private:
  // The longest list shown by reads of a key so far, element by element.
  struct Shown {
    std::int64_t begin = 0;
    std::vector<Element> elements;
  };
  std::int32_t made(std::int32_t key, std::int32_t writer, std::int32_t index) const;
  bool complete(std::int32_t key, const Element& e) const;

  const History& h_;
  const std::int32_t n_;
  WriteIndex& writes_;
  Budget& budget_;
  std::vector<Shown> shown_;            // for each key
  std::vector<std::int64_t> unjudged_;  // if reads are not judged: all list reads
};

}  // namespace isolang::certify
