// `show` returns the elements of a list read with their writers, and checks that the list is a prefix of the longest
// list of its key. `check_orders` checks that the chosen version orders begin as shown by the lists.
#include "certify/list_reads.hpp"

#include <algorithm>
#include <string>

#include "core/index.hpp"

namespace isolang::certify {
namespace {

[[noreturn]] void bad_list(std::int64_t op, const char* why) {
  throw Rejected{"operation " + std::to_string(op) + " is an intrinsic anomaly: " + why};
}

[[noreturn]] void not_shown(std::int32_t key) {
  throw Rejected{"the order of key " + std::to_string(key) + " is not the one that list reads show"};
}

void contains(const Choice& choice, std::int32_t key, std::int64_t at, std::int32_t writer) {
  const auto start = choice.key_start.begin() + key;
  if (start[0] + at >= start[1] || choice.order[start[0] + at] != writer) not_shown(key);
}

}  // namespace

ListReads::ListReads(const History& history, WriteIndex& writes, Budget& budget)
    : h_(history),
      n_(history.transactions()),
      writes_(writes),
      budget_(budget),
      shown_(writes.any_appended() ? idx(history.n_keys()) : 0) {}

std::span<const std::int32_t> ListReads::values(std::int64_t op) const {
  if (writes_.kind(op) != OpKind::read_list) return {};
  const auto list = idx(h_.op_value[op]);
  return {h_.list_values.begin() + h_.list_start[list],
          h_.list_values.begin() + h_.list_start[list + 1]};
}

std::span<const ListReads::Element> ListReads::show(std::int64_t op) {
  const std::span<const std::int32_t> list = values(op);
  if (list.empty()) return {};
  if (shown_.empty()) bad_list(op, "a thin-air element");
  const std::int32_t key = h_.op_key[op];
  Shown& shown = shown_[key];
  const std::size_t known = shown.elements.size();
  const std::size_t common = std::min(known, list.size());
  if (!std::equal(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(common),
                  h_.list_values.begin() + shown.begin))
    bad_list(op, "neither it nor another list read is a prefix of the other");
  if (list.size() <= known) return {};
  shown.begin = h_.list_start[h_.op_value[op]];
  for (const std::int32_t value : list.subspan(known)) {
    budget_.poll();
    const std::int32_t writer = writes_.element_writer(key, value);
    if (writer < 0) bad_list(op, "an element of no transaction that may be included");
    const bool same = !shown.elements.empty() && shown.elements.back().writer == writer;
    if (!same && !shown.elements.empty() && !complete(key, shown.elements.back()))
      bad_list(op, "another's element between those of one transaction");
    const std::int32_t index = same ? shown.elements.back().index + 1 : 0;
    if (made(key, writer, index) != value)
      bad_list(op, "not the order in which the transaction appended");
    shown.elements.push_back({writer, index});
  }
  return std::span<const Element>(shown.elements).subspan(known);
}

// Returns the value of the writer's append to the key with this index, or kUnknownValue if the writer made fewer
// appends.
std::int32_t ListReads::made(std::int32_t key, std::int32_t writer, std::int32_t index) const {
  const auto& appends = writes_.appends_of(key, writer);
  return idx(index) < appends.size() ? h_.op_value[appends[index]] : kUnknownValue;
}

bool ListReads::complete(std::int32_t key, const Element& e) const {
  return writes_.appends_of(key, e.writer).size() == idx(e.index) + 1;
}

void ListReads::check_end(std::int32_t t, std::int64_t op, std::int32_t own) const {
  const std::int32_t key = h_.op_key[op];
  const auto size = static_cast<std::int64_t>(values(op).size());
  if (own > 0) {
    if (size < own) bad_list(op, "not what its transaction appended");
    const Element& e = shown_[key].elements[size - 1];
    if (e.writer != t || e.index != own - 1) bad_list(op, "not what its transaction appended");
    return;
  }
  if (size == 0) return;
  const auto& elements = shown_[key].elements;
  if (elements[size - 1].writer != t && !complete(key, elements[size - 1]))
    bad_list(op, "it ends inside another transaction's appends");
  if (writes_.find_last(t, key) >= 0 &&
      std::any_of(elements.begin(), elements.begin() + size,
                  [&](const Element& e) { return e.writer == t; }))
    bad_list(op, "it shows an element that its transaction appends later");
}

std::int32_t ListReads::candidate(std::int32_t t, std::int64_t op) const {
  const std::int32_t key = h_.op_key[op];
  const std::span<const std::int32_t> list = values(op);
  const std::int32_t writer = list.empty() ? n_ : writes_.element_writer(key, list.back());
  if (writer == t || writer < 0 || h_.op_source[op] == kSourceMissing) return -1;
  if (!list.empty() && h_.op_value[writes_.appends_of(key, writer).back()] != list.back())
    return -1;  // the list stops partway through the writer's appends
  return writer;
}

void ListReads::check_orders(const Choice& choice) const {
  for (std::size_t key = 0; key < shown_.size(); ++key) {
    std::int64_t at = 0;
    std::int32_t before = n_;  // a list may begin with elements of T0, which version orders omit
    for (const Element& e : shown_[key].elements) {
      if (e.writer != before) contains(choice, static_cast<std::int32_t>(key), at++, e.writer);
      before = e.writer;
    }
  }
  std::vector<std::int32_t> elements;
  for (const std::int64_t op : unjudged_) {
    const std::int32_t key = h_.op_key[op];
    std::int64_t at = 0;
    std::int32_t before = n_;
    elements.assign(values(op).begin(), values(op).end());
    std::sort(elements.begin(), elements.end());
    const auto shows_all_of = [&](std::int32_t writer) {
      const auto& appends = writes_.appends_of(key, writer);
      return std::all_of(appends.begin(), appends.end(), [&](std::int64_t append) {
        return std::binary_search(elements.begin(), elements.end(), h_.op_value[append]);
      });
    };
    for (const std::int32_t value : values(op)) {
      budget_.poll();
      const std::int32_t writer = writes_.element_writer(key, value);
      if (writer < 0 || writer == before) continue;
      // A transaction's elements that are missing from the list were appended after all elements that the list shows.
      if (before != n_ && !shows_all_of(before)) not_shown(key);
      contains(choice, key, at++, writer);
      before = writer;
    }
  }
}

}  // namespace isolang::certify
