// Each key has a sorted array of entries. `change` returns the change in cost if a node moves,
// without moving the node. `move` moves it, and updates the entries between the old and the new
// position. Invariant: each entry stores the value that it finds.
#include "engine/hard/key_orders.hpp"

#include <algorithm>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {
constexpr double kEnd = std::numeric_limits<double>::infinity();

}  // namespace

KeyOrders::KeyOrders(const TotalOrder& total_order) : total_order_(total_order) {
  set_touches();
  set_codes();
}

void KeyOrders::set_touches() {
  const Problem& p = total_order_.problem;
  const auto nodes = total_order_.graph.nodes();
  std::vector<std::int32_t> touch_of_writer(p.writer_txn.size(), -1);
  touch_start_.push_back(0);
  for (Node v = 0; v < nodes; ++v) {
    const auto first = static_cast<std::ptrdiff_t>(touch_start_.back());
    const auto on = [&](std::int32_t key) -> Touch& {
      const auto found = std::find_if(touches_.begin() + first, touches_.end(),
                                      [&](const Touch& t) { return t.key == key; });
      if (found != touches_.end()) return *found;
      return touches_.emplace_back(Touch{key, v, kNone, kNone, 0, 0});
    };
    const std::int32_t txn = total_order_.graph.transaction_of(v);
    if (total_order_.graph.check_of(v) >= 0 && txn >= 0 && txn != p.n && total_order_.usable(txn)) {
      if (v == total_order_.read_node(txn)) {
        for (const std::int32_t r : total_order_.reads.of(txn)) ++on(p.read_key[r]).reads;
        for (auto t = touches_.begin() + first; t != touches_.end(); ++t) {
          t->first_read = static_cast<std::int32_t>(touched_reads_.size());
          for (const std::int32_t r : total_order_.reads.of(txn))
            if (p.read_key[r] == t->key) touched_reads_.push_back(r);
        }
      }
      for (const std::int32_t w : total_order_.writes.of(txn)) {
        if (v == total_order_.write_node(txn)) {
          Touch& touch = on(total_order_.pruner.key_of(w));
          touch.writer = w;
          touch_of_writer[w] = static_cast<std::int32_t>(&touch - touches_.data());
        } else if (total_order_.locks && v == total_order_.read_node(txn)) {
          // Becomes the index of the touch once all touches are known.
          on(total_order_.pruner.key_of(w)).guarded = w;
        }
      }
    }
    touch_start_.push_back(static_cast<std::int32_t>(touches_.size()));
  }
  for (Touch& t : touches_)
    if (t.guarded >= 0) t.guarded = touch_of_writer[t.guarded];
}

void KeyOrders::set_codes() {
  const Problem& p = total_order_.problem;
  std::vector<std::uint8_t> fine(idx(p.keys), 0);
  for (const Touch& t : touches_)
    for (std::int32_t i = 0; i < t.reads; ++i)
      if (total_order_.read_class(touched_reads_[t.first_read + i]) < 0 || t.reads > 1)
        fine[t.key] = 1;
  const auto code = [&](std::int32_t w) {
    if (fine[total_order_.pruner.key_of(w)]) return w;
    const std::int32_t c = total_order_.writer_class(w);
    return c < 0 ? code_of_unread() : c;
  };
  for (std::size_t i = 0; i < touches_.size(); ++i) {
    Touch& t = touches_[i];
    if (t.writer >= 0) t.write = code(t.writer);
    if (t.reads > 0)
      t.read = fine[t.key] ? ~static_cast<std::int32_t>(i)
                           : total_order_.read_class(touched_reads_[t.first_read]);
  }
  for (std::int32_t key = 0; key < p.keys; ++key) {
    const std::int32_t w = p.key_start[key];
    first_code_.push_back(w < p.key_start[key + 1] ? code(w) : code_of_unread());
  }
}

std::int32_t KeyOrders::misses_slowly(std::int32_t touch, std::int32_t writer) const {
  const Touch& t = touches_[touch];
  std::int32_t sum = 0;
  for (std::int32_t i = 0; i < t.reads; ++i)
    sum +=
        writer >= code_of_unread() || !total_order_.sees(touched_reads_[t.first_read + i], writer);
  return sum;
}

void KeyOrders::build(std::vector<double> positions, const std::vector<std::uint8_t>& present) {
  position_ = std::move(positions);
  keys_.assign(idx(total_order_.problem.keys), {});
  place_.assign(touches_.size(), -1);
  for (std::size_t i = 0; i < touches_.size(); ++i) {
    const Touch& t = touches_[i];
    if (t.in_order() && present[total_order_.graph.transaction_of(t.node)])
      keys_[t.key].push_back({position(t.node), static_cast<std::int32_t>(i), t.read, t.write, 0});
  }
  for (std::int32_t key = 0; key < total_order_.problem.keys; ++key) {
    auto& entries = keys_[key];
    std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
      return a.at != b.at ? a.at < b.at : a.touch < b.touch;
    });
    entries.insert(entries.begin(), {kFirst, -1, kNone, first_code_[key], 0});
    entries.push_back({kEnd, -1, kNone, 0, 0});
    find_values(key, 0);
  }
}

// Updates the positions of the entries from `from` on, and the values that these entries find.
void KeyOrders::find_values(std::int32_t key, std::size_t from) {
  auto& entries = keys_[key];
  for (std::size_t i = from; i < entries.size(); ++i) {
    Entry& e = entries[i];
    if (i > 0) e.in = entries[i - 1].writes() ? entries[i - 1].write : entries[i - 1].in;
    if (e.touch >= 0) place_[e.touch] = static_cast<std::int32_t>(i);
  }
}

std::int32_t KeyOrders::change(Node v, double to) const {
  std::int32_t sum = 0;
  for (std::int32_t i = touch_start_[v]; i < touch_start_[v + 1]; ++i) {
    const Touch& touch = touches_[i];
    if (touch.in_order()) {
      const Entry* const own = keys_[touch.key].data() + place_[i];
      if (to > own[1].at)
        sum += later(touch, own, to);
      else if (to < own[-1].at)
        sum += earlier(touch, own, to);
      if (total_order_.locks && touch.writer >= 0) sum += locks(touch, own, to);
    }
    if (touch.guarded >= 0) sum += guard(touch, to) - guard(touch, position(v));
  }
  return sum;
}

// Counts how many more reads miss their value if the touch moves. Goes over the passed entries, and
// over the reads after them, with the write before each entry now (`before`) and after the move
// (`after`).
std::int32_t KeyOrders::later(const Touch& touch, const Entry* own, double to) const {
  const Entry* e = own + 1;
  if (touch.write == kNone) {
    while (e->at < to) ++e;
    return misses(touch.read, e->in) - misses(touch.read, own->in);
  }
  std::int32_t sum = 0, before = touch.write, after = own->in;
  for (; e->at < to; ++e) {
    sum += misses(e->read, after) - misses(e->read, before);
    if (e->writes()) before = after = e->write;
  }
  sum += misses(touch.read, after) - misses(touch.read, own->in);
  for (; before != touch.write; ++e) {
    sum += misses(e->read, touch.write) - misses(e->read, before);
    if (e->writes()) break;
  }
  return sum;
}

std::int32_t KeyOrders::earlier(const Touch& touch, const Entry* own, double to) const {
  const Entry* e = own - 1;
  while (e[-1].at > to) --e;
  std::int32_t sum = misses(touch.read, e->in) - misses(touch.read, own->in);
  if (touch.write == kNone) return sum;
  std::int32_t before = e->in, after = touch.write;
  for (; e < own; ++e) {
    sum += misses(e->read, after) - misses(e->read, before);
    if (e->writes()) before = after = e->write;
  }
  for (e = own + 1; after != touch.write; ++e) {
    sum += misses(e->read, after) - misses(e->read, touch.write);
    if (e->writes()) break;
  }
  return sum;
}

// Returns the difference in broken locks. A lock is broken if the write before its own write comes
// after the lock was taken. A write that moves therefore affects its own lock and the lock of the
// next write, at the old position and at the new one.
std::int32_t KeyOrders::locks(const Touch& touch, const Entry* own, double to) const {
  const double since =
      position(total_order_.read_node(total_order_.graph.transaction_of(touch.node)));
  const auto broken = [&](const Entry* previous, const Entry* next, double here) {
    while (previous == own || !previous->writes()) --previous;
    while (next == own || !next->writes()) ++next;
    std::int32_t count = previous->at > since;
    if (next->at == kEnd) return count;
    const double open = opened(*next);
    return count + (here > open) - (previous->at > open);
  };
  const Entry *left = own, *right = own;
  if (to > own->at)
    while (right[1].at < to) left = ++right;
  else
    while (left[-1].at > to) right = --left;
  const std::int32_t now = broken(own - 1, own + 1, own->at);
  return (to > own->at ? broken(left, right + 1, to) : broken(left - 1, right, to)) - now;
}

std::int32_t KeyOrders::guard(const Touch& touch, double to) const {
  const std::int32_t at = place_[touch.guarded];
  if (at < 0) return 0;
  const Entry* write = keys_[touch.key].data() + at;
  do --write;
  while (!write->writes());
  return write->at > to;
}

void KeyOrders::move(Node v, double to) {
  for (std::int32_t i = touch_start_[v]; i < touch_start_[v + 1]; ++i)
    if (touches_[i].in_order()) shift(i, to);
  position_[v] = to;
}

void KeyOrders::shift(std::int32_t touch, double to) {
  auto& entries = keys_[touches_[touch].key];
  Entry* const own = entries.data() + place_[touch];
  own->at = to;
  Entry *low = own, *high = own;  // the range of entries that have moved
  if (to > own[1].at) {
    const Entry moved = *own;
    for (; high[1].at < to; ++high) high[0] = high[1];
    *high = moved;
    low->in = moved.in;
  } else if (to < own[-1].at) {
    const Entry moved = *own;
    for (; low[-1].at > to; --low) low[0] = low[-1];
    *low = moved;
    low->in = low[1].in;
  } else {
    return;
  }
  for (Entry* e = low; e <= high; ++e) {
    place_[e->touch] = static_cast<std::int32_t>(e - entries.data());
    e[1].in = e->writes() ? e->write : e->in;
  }
  for (Entry* e = high + 1; !e->writes(); ++e) e[1].in = e->in;
}

std::int32_t KeyOrders::enter(Node v) {
  std::int64_t sum = 0;
  for (std::int32_t i = touch_start_[v]; i < touch_start_[v + 1]; ++i) {
    const Touch& t = touches_[i];
    if (!t.in_order()) continue;
    auto& entries = keys_[t.key];
    sum -= cost_of(t.key);
    const auto at =
        std::ranges::find_if(entries, [&](const Entry& e) { return e.at > position(v); });
    const auto place = idx(at - entries.begin());
    entries.insert(at, {position(v), i, t.read, t.write, 0});
    find_values(t.key, place);
    sum += cost_of(t.key);
  }
  return static_cast<std::int32_t>(sum);
}

std::int32_t KeyOrders::leave(Node v) {
  std::int64_t sum = 0;
  for (std::int32_t i = touch_start_[v]; i < touch_start_[v + 1]; ++i) {
    const Touch& t = touches_[i];
    if (!t.in_order()) continue;
    auto& entries = keys_[t.key];
    sum -= cost_of(t.key);
    const auto place = std::exchange(place_[i], -1);
    entries.erase(entries.begin() + place);
    find_values(t.key, idx(place));
    sum += cost_of(t.key);
  }
  return static_cast<std::int32_t>(sum);
}

std::int64_t KeyOrders::cost_of(std::int32_t key) const {
  std::int64_t sum = 0;
  double previous = kFirst;
  for (const Entry& e : keys_[key]) {
    if (e.touch < 0) continue;
    sum += misses(e.read, e.in);
    if (!e.writes()) continue;
    if (total_order_.locks) sum += previous > opened(e);
    previous = e.at;
  }
  return sum;
}

std::int64_t KeyOrders::cost() const {
  std::int64_t sum = 0;
  for (std::int32_t key = 0; key < total_order_.problem.keys; ++key) sum += cost_of(key);
  return sum;
}

void KeyOrders::find_unsatisfied(std::span<const Node> nodes,
                                 std::vector<std::int32_t>& touches) const {
  touches.clear();
  for (const Node v : nodes)
    for (std::int32_t t = touch_start_[v]; t < touch_start_[v + 1]; ++t) {
      const std::int32_t place = place_[t];
      if (place < 0) continue;
      const Entry& e = keys_[touches_[t].key][place];
      if (misses(e.read, e.in) > 0) touches.push_back(t);
    }
}

bool KeyOrders::is_unsatisfied(std::int32_t touch, Unsatisfied& found) const {
  const std::int32_t place = place_[touch];
  if (place < 0) return false;
  const Touch& t = touches_[touch];
  const Entry* e = keys_[t.key].data() + place;
  if (misses(e->read, e->in) == 0) return false;
  do --e;
  while (!e->writes());
  found = {touched_reads_[t.first_read], t.node, e->touch < 0 ? -1 : touches_[e->touch].node,
           e->at};
  return true;
}

}  // namespace isolang
