// The old dbcop's history.bincode: nested vectors in bincode 1.x, little-endian. Every count is a u64, and the file has
// no magic number.
#include <bit>
#include <cstring>

#include "readers/common.hpp"

namespace isolang {
namespace {

constexpr std::uint64_t kEventBytes = 18;  // bool write, u64 variable, u64 value, bool success
constexpr std::uint64_t kMinTxnBytes = 9;  // an event count and a bool

class Bincode {
 public:
  Bincode(std::string_view data, const std::string& name)
      : begin_(data.data()), p_(data.data()), end_(data.data() + data.size()), name_(name) {}

  std::int64_t at() const { return p_ - begin_; }
  std::uint64_t left() const { return static_cast<std::uint64_t>(end_ - p_); }

  std::uint64_t number(const char* what) {
    need(8, what);
    return raw_number();
  }

  bool flag(const char* what) {
    need(1, what);
    const auto byte = static_cast<unsigned char>(*p_);
    if (byte > 1)
      fail_byte(name_, at(), std::string(what) + " is not a boolean (got " + quoted_byte(byte) + ", expected 0 or 1)");
    ++p_;
    return byte != 0;
  }

  // Reads a count of items of at least `least` bytes each. Fails if that many items need more than the remaining bytes.
  std::uint64_t count(const char* what, std::uint64_t least) {
    const std::int64_t where = at();
    const std::uint64_t n = number(what);
    if (n > left() / least)
      fail_byte(name_, where,
                std::string(what) + " is impossible (got " + std::to_string(n) + ", but only " +
                    std::to_string(left()) + " bytes follow); hint: truncated, or not a dbcop bincode file");
    return n;
  }

  std::string text(const char* what) {
    const std::uint64_t length = count(what, 1);
    const std::string_view view(p_, static_cast<std::size_t>(length));
    if (!is_utf8(view)) fail_byte(name_, at(), std::string(what) + " is not valid UTF-8");
    p_ += length;
    return std::string(view);
  }

  // The bytes of the events have already been counted, so the length is not checked again.
  std::uint64_t raw_number() {
    std::uint64_t n = 0;
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(&n, p_, 8);
    } else {
      for (int i = 7; i >= 0; --i) n = n << 8U | static_cast<unsigned char>(p_[i]);
    }
    p_ += 8;
    return n;
  }

 private:
  void need(std::uint64_t bytes, const char* what) {
    if (left() < bytes)
      fail_byte(name_, at(), std::string("the file ends before ") + what + " (got " + std::to_string(left()) +
                                 " bytes, expected " + std::to_string(bytes) + "); hint: truncated");
  }

  const char* begin_;
  const char* p_;
  const char* end_;
  const std::string& name_;
};

}  // namespace

Reading read_bincode(std::string_view data, const std::string& name, Budget& budget) {
  check_size(name, data.size());
  Bincode in(data, name);
  Reading out;
  History& h = out.history;
  for (const char* field :
       {"params.id", "params.n_node", "params.n_variable", "params.n_transaction", "params.n_event"})
    // The fields are u64, and are kept as text because nothing is computed from them.
    out.remarks.emplace_back(field, std::to_string(in.number(field)));
  for (const char* field : {"info", "start", "end"}) out.remarks.emplace_back(field, in.text(field));

  // This is an upper bound, at most 1.5 times the input.
  h.reserve_operations(static_cast<std::size_t>(in.left() / kEventBytes));

  Numbers keys(h.key_atoms), values(h.values);
  const std::int32_t zero = values.natural(0);  // T0 wrote 0 to every key
  std::int64_t failed_events = 0, failed_txns = 0, empty_sessions = 0, empty_txns = 0;
  std::int32_t session = 0;
  const std::uint64_t n_sessions = in.count("the number of sessions", 8);
  for (std::uint64_t s = 0; s < n_sessions; ++s) {
    const std::uint64_t n_txns = in.count("the number of transactions of a session", kMinTxnBytes);
    if (n_txns == 0) {
      ++empty_sessions;
      continue;
    }
    for (std::uint64_t t = 0; t < n_txns; ++t) {
      budget.poll();
      const std::int64_t position = in.at();
      const std::uint64_t n_events = in.count("the number of events of a transaction", kEventBytes);
      const std::int32_t txn = h.begin_transaction(session, Status::committed, h.transactions() + 1, position);
      if (n_events == 0) ++empty_txns;
      const auto first = h.op_kind.size();
      const auto last = first + static_cast<std::size_t>(n_events);
      h.op_kind.resize(last);
      h.op_key.resize(last);
      h.op_value.resize(last);
      h.op_source.resize(last);
      h.op_start.back() = static_cast<std::int64_t>(last);
      for (std::size_t i = first; i < last; ++i) {
        h.op_position.push_back(in.at());
        const bool write = in.flag("event.write");
        h.op_kind[i] = static_cast<std::uint8_t>(write ? OpKind::write : OpKind::read);
        h.op_key[i] = h.key_of(keys.natural(in.raw_number()), zero);
        h.op_value[i] = values.natural(in.raw_number());
        const bool ok = in.flag("event.success");
        h.op_ok.push_back(ok ? 1 : 0);
        failed_events += ok ? 0 : 1;
      }
      if (!in.flag("transaction.success")) {
        h.txn_status[static_cast<std::size_t>(txn)] = static_cast<std::uint8_t>(Status::aborted);
        ++failed_txns;
      }
    }
    ++session;
  }
  if (in.left() > 0)
    fail_byte(name, in.at(), "bytes after the last session (got " + std::to_string(in.left()) +
                                 " more, expected the end); hint: not a dbcop bincode file, or two of them in one");
  out.remarks.emplace_back("failed_events", failed_events);
  out.remarks.emplace_back("failed_transactions", failed_txns);
  out.remarks.emplace_back("empty_transactions", empty_txns);
  out.remarks.emplace_back("empty_sessions", empty_sessions);
  // `dbcop generate` writes a plan in the same layout. In a plan, no event has succeeded, because none was tried.
  out.remarks.emplace_back("plan", h.transactions() > 0 && failed_txns == h.transactions() &&
                                       failed_events == h.operations());
  return out;
}

}  // namespace isolang
