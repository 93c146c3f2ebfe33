// Regular Viper logs: lines of {"value": [["r", key, value, flag], …]}, numbers throughout; "nil" may be read.
#include "readers/common.hpp"
#include "readers/cursor.hpp"

namespace isolang {
namespace {

class Viper {
 public:
  Viper(History& history, Budget& budget)
      : h_(history), keys_(history.key_atoms), values_(history.values), budget_(budget) {}

  bool file(std::int32_t number, std::string_view text) {
    Cursor in(text);
    const std::int32_t session = h_.sessions;
    while (true) {
      in.blanks();
      if (in.newline()) continue;
      if (in.at_end()) return true;
      budget_.poll();
      const std::int64_t line = in.line();
      h_.begin_transaction(session, Status::committed, h_.transactions() + 1, line, number);
      if (!transaction(in, line) || in.line() != line) return false;
      in.blanks();
      if (!in.at_end() && !in.newline()) return false;
    }
  }

  // A read whose fourth slot is true, of a dead value, where nothing is ever deleted: the slots are outcomes.
  bool apply_outcomes() {
    if (!dead_read_) return false;
    for (std::size_t t = 0; t < h_.txn_status.size(); ++t) {
      bool any = false;
      const auto first = static_cast<std::size_t>(h_.op_start[t]), last = static_cast<std::size_t>(h_.op_start[t + 1]);
      for (std::size_t i = first; i < last; ++i) any = any || flags_[i] != 0;
      if (!any && last > first) h_.txn_status[t] = static_cast<std::uint8_t>(Status::aborted);
      for (std::size_t i = first; i < last; ++i) h_.op_ok[i] = !any || is_read(i) ? 1 : flags_[i];
    }
    return true;
  }

  // A value that nobody wrote to the key was there before.
  void mark_initial_reads() {
    const std::size_t m = h_.op_kind.size();
    std::size_t size = 1024;
    while (size < 2 * m) size *= 2;
    std::vector<std::int64_t> written(size, -1);  // open addressing; a pair of a key and a value is never -1
    const auto slot = [&](std::size_t op) {
      const auto pair = static_cast<std::int64_t>(h_.op_key[op]) << 32 | h_.op_value[op];
      std::size_t at = static_cast<std::uint64_t>(pair) * 0x9e3779b97f4a7c15ULL >> 20U & (size - 1);
      while (written[at] >= 0 && written[at] != pair) at = (at + 1) & (size - 1);
      return std::pair{at, pair};
    };
    for (std::size_t i = 0; i < m; ++i)
      if (!is_read(i)) {
        const auto [at, pair] = slot(i);
        written[at] = pair;
      }
    for (std::size_t i = 0; i < m; ++i)
      if (is_read(i) && h_.op_value[i] != kNil && written[slot(i).first] < 0) h_.op_source[i] = kSourceInitial;
  }

 private:
  bool is_read(std::size_t op) const { return h_.op_kind[op] == static_cast<std::uint8_t>(OpKind::read); }

  bool transaction(Cursor& in, std::int64_t line) {
    if (!in.mark('{') || !in.take("\"value\"") || !in.mark(':') || !in.mark('[')) return false;
    for (bool first = true; !in.take(']'); first = false) {
      if ((!first && !in.mark(',')) || !operation(in, line)) return false;
      in.blanks();
    }
    in.blanks();
    return in.take('}');
  }

  bool operation(Cursor& in, std::int64_t line) {
    if (!in.mark('[') || !in.take('"')) return false;
    const bool read = in.take('r');
    if ((!read && !in.take('w')) || !in.take('"') || !in.mark(',')) return false;
    std::int32_t key = 0, value = kNil;
    if (!number(in, keys_, key) || !in.mark(',')) return false;
    if (!(read && in.take("\"nil\"")) && !number(in, values_, value)) return false;
    bool flag = false;
    if (!in.mark(',') || !in.flag(flag)) return false;
    in.blanks();
    if (!in.take(']')) return false;
    h_.add_op(read ? OpKind::read : OpKind::write, h_.key_of(key), value, line, read || flag);
    flags_.push_back(flag ? 1 : 0);
    dead_read_ = dead_read_ || (read && flag);
    return true;
  }

  static bool number(Cursor& in, Numbers& numbers, std::int32_t& atom) {
    std::int64_t negative = 0;
    std::uint64_t natural = 0;
    if (in.peek() == '-') {
      if (!in.negative(negative)) return false;
      atom = numbers.integer(negative);
    } else {
      if (!in.natural(natural)) return false;
      atom = numbers.natural(natural);
    }
    return true;
  }

  History& h_;
  Numbers keys_, values_;
  Budget& budget_;
  std::vector<std::uint8_t> flags_;  // per operation: its fourth slot
  bool dead_read_ = false;
};

}  // namespace

std::optional<Reading> read_regular_viper(const std::vector<NamedBytes>& files, Budget& budget) {
  Reading out;
  Viper viper(out.history, budget);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    bytes += files[i].bytes.size();
    check_size(files[i].name, bytes);
    if (!viper.file(static_cast<std::int32_t>(i), files[i].bytes)) return std::nullopt;
  }
  out.remarks.emplace_back("outcomes", viper.apply_outcomes());
  viper.mark_initial_reads();
  return out;
}

}  // namespace isolang
