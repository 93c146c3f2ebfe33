// dbcop's .hist text: `[x:=1 y==2] [x==?]!`. Comments follow `//`, and lines of dashes separate
// sessions.
#include <charconv>

#include "readers/common.hpp"
#include "readers/versions.hpp"

namespace isolang {
namespace {

class Hist {
 public:
  Hist(std::string_view text, const std::string& name, History& history, Budget& budget)
      : p_(text.data()), end_(p_ + text.size()), name_(name), h_(history), values_(history.values), budget_(budget) {}

  void read(Remarks& remarks) {
    while (true) {
      budget_.poll();
      blanks();
      if (at_line_end() || *p_ != '-' || !dashes()) {
        for (; !at_line_end(); blanks()) token();
      }
      if (p_ == end_) break;
      ++p_;
      ++line_;
    }
    if (opened_ != 0) fail_line(name_, opened_, "a transaction without ']' (the file ends inside it)");
    if (used_) sessions_.push_back(seen_);
    remarks.emplace_back("sessions", sessions_);
    remarks.emplace_back("empty_sessions",
                         h_.transactions() == 0 ? seen_ - 1 : seen_ - static_cast<std::int64_t>(sessions_.size()));
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
  static bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; }

  bool at_line_end() const { return p_ == end_ || *p_ == '\n'; }
  bool next_is(std::string_view word) const {
    return std::string_view(p_, static_cast<std::size_t>(end_ - p_)).starts_with(word);
  }
  bool take(std::string_view word) {
    if (!next_is(word)) return false;
    p_ += word.size();
    return true;
  }
  // Skips blanks and a comment, within the line.
  void blanks() {
    while (p_ < end_ && is_blank(*p_)) ++p_;
    if (next_is("//"))
      while (!at_line_end()) ++p_;
  }

  // Reads a line of two or more dashes, which ends the session. Returns whether there was one.
  bool dashes() {
    const char* const start = p_;
    while (p_ < end_ && *p_ == '-') ++p_;
    const bool enough = p_ - start >= 2;
    blanks();
    if (!enough || !at_line_end()) {
      p_ = start;
      return false;
    }
    if (opened_ != 0)
      fail_line(name_, line_, "a session ends inside the transaction of line " + std::to_string(opened_) + " (no ']')");
    if (used_) sessions_.push_back(seen_);
    used_ = false;
    ++seen_;
    return true;
  }

  void token() {
    if (*p_ == '[') {
      if (opened_ != 0) fail_line(name_, line_, "'[' inside the transaction of line " + std::to_string(opened_) + " (no ']')");
      ++p_;
      opened_ = line_;
      txn_ = h_.begin_transaction(static_cast<std::int32_t>(sessions_.size()), Status::committed,
                                  h_.transactions() + 1, line_);
      used_ = true;
    } else if (*p_ == ']') {
      close();
    } else {
      event();
    }
  }

  void close() {
    if (opened_ == 0) outside("']'");
    if (h_.op_start[static_cast<std::size_t>(txn_)] == h_.operations())
      fail_line(name_, line_, "an empty transaction (got [], expected events in it)");
    ++p_;
    blanks();
    if (take("!")) h_.txn_status[static_cast<std::size_t>(txn_)] = static_cast<std::uint8_t>(Status::aborted);
    opened_ = 0;
  }

  void event() {
    const char* const start = p_;
    while (p_ < end_ && is_name(*p_)) ++p_;
    const std::string_view variable(start, static_cast<std::size_t>(p_ - start));
    spaces();
    const bool write = take(":=");
    if (variable.empty() || (!write && !take("=="))) bad(start);
    spaces();
    std::int32_t value = kNil;
    if (write || !take("?")) {
      const char* const digits = p_;
      std::uint64_t version = 0;
      const auto [stop, error] = std::from_chars(p_, end_, version);
      if (error == std::errc::invalid_argument || (stop < end_ && is_name(*stop))) bad(start);
      if (error == std::errc::result_out_of_range)
        fail_line(name_, line_, "a version beyond 64 bits (got " +
                                    quoted({digits, static_cast<std::size_t>(stop - digits)}) + ")");
      p_ = stop;
      value = values_.natural(version);
    }
    if (opened_ == 0) outside(quoted({start, static_cast<std::size_t>(p_ - start)}));
    const std::int32_t key = h_.key_of(h_.key_atoms.intern_text(AtomKind::string, variable));
    h_.add_op(write ? OpKind::write : OpKind::read, key, value, line_);
  }

  void spaces() {
    while (p_ < end_ && is_blank(*p_)) ++p_;
  }

  [[noreturn]] void outside(const std::string& what) const {
    fail_line(name_, line_, what + " outside a transaction (no '[' before it)");
  }

  [[noreturn]] void bad(const char* start) const {
    const char* stop = start;
    while (stop < end_ && *stop != '\n' && *stop != '\r' && stop - start < 20) ++stop;
    fail_line(name_, line_, "not a history (got " + quoted({start, static_cast<std::size_t>(stop - start)}) +
                                ", expected [x:=1 y==2 z==?], ] or ]!, a line of dashes, or // and a comment)");
  }

  const char* p_;
  const char* end_;
  const std::string& name_;
  History& h_;
  Numbers values_;
  Budget& budget_;
  std::vector<std::int64_t> sessions_;  // for each session with transactions: its number in the file
  std::int64_t seen_ = 1;               // sessions of the file so far, including the current one
  std::int64_t line_ = 1, opened_ = 0;  // opened_: where the current transaction began; 0 outside
  std::int32_t txn_ = 0;
  bool used_ = false;                   // whether the current session has transactions
};

}  // namespace

Reading read_hist(std::string_view text, const std::string& name, Budget& budget) {
  check_size(name, 2 * text.size());  // a transaction takes six bytes here, so twice as many fit as in other formats
  Reading out;
  Hist(without_byte_order_mark(text), name, out.history, budget).read(out.remarks);
  nil_for_unwritten_zeros(out);
  return out;
}

}  // namespace isolang
