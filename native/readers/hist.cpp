// Regular .hist text of dbcop: `[x:=1 y==2] [x==?]!`, comments after `//`, lines of dashes between sessions.
#include "readers/common.hpp"
#include "readers/cursor.hpp"

namespace isolang {
namespace {

class Hist {
 public:
  Hist(std::string_view text, History& history, Budget& budget)
      : in_(text), h_(history), values_(history.values), budget_(budget) {}

  bool read() {
    while (!in_.at_end()) {
      budget_.poll();
      blanks();
      if (in_.peek() == '-' ? !dashes() : !tokens()) return false;
      if (!in_.at_end() && !in_.newline()) return false;
    }
    empty_ += !used_ && h_.transactions() > 0 ? 1 : 0;
    return !open_;
  }

  const std::vector<std::int64_t>& labels() const { return labels_; }
  std::int64_t empty() const { return empty_; }

 private:
  void blanks() {
    for (in_.blanks(); in_.peek() == '\f' || in_.peek() == '\v'; in_.blanks()) in_.next();
  }

  // To the end of the line: false at what is no plain text.
  bool comment() {
    for (char c = in_.peek(); (c >= ' ' && c <= '~') || c == '\t' || c == '\r'; c = in_.peek()) in_.next();
    return in_.at_end() || in_.peek() == '\n';
  }

  bool dashes() {
    if (open_ || !in_.take("--")) return false;
    while (in_.take('-')) {
    }
    if (used_) {
      ++session_;
      labels_.push_back(labels_.back() + 1);
    } else {
      ++empty_;
      ++labels_.back();
    }
    used_ = false;
    blanks();
    return !in_.take("//") || comment();
  }

  bool tokens() {  // to the end of the line
    for (blanks(); !in_.at_end() && in_.peek() != '\n'; blanks()) {
      if (in_.take("//")) {
        if (!comment()) return false;
      } else if (in_.take('[')) {
        if (open_) return false;
        open_ = true;
        txn_ = h_.begin_transaction(session_, Status::committed, h_.transactions() + 1, in_.line());
      } else if (!open_) {
        return false;
      } else if (in_.take(']')) {
        if (!close()) return false;
      } else if (!event()) {
        return false;
      }
    }
    return true;
  }

  bool close() {
    if (h_.op_start[static_cast<std::size_t>(txn_)] == h_.operations()) return false;
    blanks();
    if (in_.take('!')) h_.txn_status[static_cast<std::size_t>(txn_)] = static_cast<std::uint8_t>(Status::aborted);
    open_ = false;
    used_ = true;
    return true;
  }

  bool event() {
    const std::string_view variable = in_.name();
    if (variable.empty()) return false;
    blanks();
    const bool write = in_.take(":=");
    if (!write && !in_.take("==")) return false;
    blanks();
    const std::int32_t key = h_.key_of(h_.key_atoms.intern_text(AtomKind::string, variable));
    std::uint64_t version = 0;
    if (!write && in_.take('?')) {
      h_.add_op(OpKind::read, key, kNil, in_.line());
      return true;
    }
    if (!in_.natural(version)) return false;
    h_.add_op(write ? OpKind::write : OpKind::read, key, values_.natural(version), in_.line());
    return true;
  }

  Cursor in_;
  History& h_;
  Numbers values_;
  Budget& budget_;
  std::vector<std::int64_t> labels_{1};  // of the sessions with transactions: which one of the file's it is
  std::int64_t empty_ = 0;               // sessions
  std::int32_t session_ = 0, txn_ = 0;
  bool used_ = false, open_ = false;
};

}  // namespace

std::optional<Reading> read_regular_hist(std::string_view text, const std::string& name, Budget& budget) {
  check_size(name, 2 * text.size());  // a transaction takes six bytes here: twice as many fit as in other formats
  Reading out;
  Hist hist(text, out.history, budget);
  if (!hist.read()) return std::nullopt;
  out.remarks.emplace_back("sessions", hist.labels());
  out.remarks.emplace_back("empty", hist.empty());
  return out;
}

}  // namespace isolang
