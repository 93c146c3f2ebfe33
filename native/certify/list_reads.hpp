// What the list reads of a witness show: the elements of each key, who appended them, and so how
// its order begins.
//
// All list reads of a key are prefixes of the longest one, so that each element is visited once.
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
    std::int32_t writer;  // T0 or one that may be included
    std::int32_t index;   // among the writer's own appends to the key
  };

  ListReads(const History& history, WriteIndex& writes, Budget& budget);

  std::span<const std::int32_t> values(std::int64_t op) const;  // nil is the empty list

  // Adds what the list read shows: the elements that no other showed before. Throws Rejected if it
  // is an anomaly.
  std::span<const Element> show(std::int64_t op);
  // Checks how a list read of `t` ends, if `own` appends of its transaction precede it: with these,
  // else at the end of another's appends. Throws Rejected.
  void check_end(std::int32_t t, std::int64_t op, std::int32_t own) const;
  // The list read counts for the order although nobody judges what it shows.
  void keep(std::int64_t op) { unjudged_.push_back(op); }

  // The only transaction that an external list read of `t` may read from; -1 if there is none.
  std::int32_t candidate(std::int32_t t, std::int64_t op) const;

  // The orders must contain those of the lists that `show` kept. Throws Rejected.
  void check_orders(const Choice& choice) const;

 private:
  // What the list reads of a key have shown so far: the longest list, element by element.
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
  std::vector<Shown> shown_;            // per key
  std::vector<std::int64_t> unjudged_;  // when reads are not judged: all of them
};

}  // namespace isolang::certify
