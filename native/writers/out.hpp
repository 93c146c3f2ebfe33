// A buffer in front of a sink. Its functions encode numbers as required by the output formats.
#pragma once
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/history.hpp"
#include "core/index.hpp"
#include "writers/writers.hpp"

namespace isolang {

class Out {
 public:
  explicit Out(const Sink& sink) : sink_(sink), buffer_(kSize) {}
  void text(std::string_view s) {
    if (s.size() > kSize - used_) flush();
    if (s.size() > kSize) return sink_(s);
    std::memcpy(buffer_.data() + used_, s.data(), s.size());
    used_ += s.size();
  }
  template <typename Integer>
  void number(Integer n) {
    if (kSize - used_ < 24) flush();
    char* const at = buffer_.data() + used_;
    used_ += static_cast<std::size_t>(std::to_chars(at, at + 24, n).ptr - at);
  }
  void u64(std::uint64_t n) {
    char bytes[8];
    for (char& byte : bytes) {  // little-endian on every machine
      byte = static_cast<char>(n & 0xff);
      n >>= 8;
    }
    text({bytes, 8});
  }
  void byte(bool b) { text({b ? "\1" : "\0", 1}); }
  void flush() {
    if (used_ > 0) sink_({buffer_.data(), used_});
    used_ = 0;
  }

 private:
  static constexpr std::size_t kSize = std::size_t{1} << 20;
  const Sink& sink_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
};

// The transactions of each session; sessions are in the order of first appearance. Transactions are numbered as in the
// outline.
struct Sessions {
  explicit Sessions(const Outline& part) : start(1, 0), place_of(part.txns.size()) {
    const auto idx = [](auto i) { return static_cast<std::size_t>(i); };
    const std::vector<std::int32_t>& session_of = part.history.txn_session;
    std::vector<std::int32_t> number(idx(part.history.sessions), -1), size;
    for (const std::int32_t t : part.txns) {
      std::int32_t& n = number[idx(session_of[idx(t)])];
      if (n < 0) {
        n = static_cast<std::int32_t>(size.size());
        size.push_back(0);
      }
      ++size[idx(n)];
    }
    for (const std::int32_t n : size) start.push_back(start.back() + n);
    std::vector<std::int32_t> next(start.begin(), start.end() - 1);
    txns.resize(part.txns.size());
    for (std::int32_t i = 0; idx(i) < part.txns.size(); ++i) {
      const auto s = number[idx(session_of[idx(part.txns[idx(i)])])];
      place_of[idx(i)] = {s, next[idx(s)] - start[idx(s)]};
      txns[idx(next[idx(s)]++)] = i;
    }
  }
  std::int32_t count() const { return static_cast<std::int32_t>(start.size()) - 1; }
  std::vector<std::int32_t> start, txns;
  std::vector<std::pair<std::int32_t, std::int32_t>> place_of;  // (session, position in it) of each transaction
};

}  // namespace isolang
