// AWDIT's `test` text: lines of the form `r key value`. Any run of '-' separates transactions, and any run of '='
// separates sessions. Nothing is implicit: T0 wrote no number, so a number that no transaction wrote is a thin-air
// read.
#include <charconv>

#include "readers/common.hpp"

namespace isolang {
namespace {

class Awdit {
 public:
  Awdit(std::string_view data, const std::string& name, History& history, Budget& budget)
      : p_(data.data()), end_(data.data() + data.size()), name_(name), h_(history), keys_(history.key_atoms),
        values_(history.values), budget_(budget) {}

  void run(Remarks& remarks) {
    bool open = false;          // whether a transaction of this session is being filled
    bool fresh_session = true;  // whether no transaction of this session has begun
    std::int64_t separators = 0, ops = 0;
    expect_lines(h_, {p_, static_cast<std::size_t>(end_ - p_)}, static_cast<std::size_t>(end_ - p_));
    for (skip_blank(); p_ < end_; skip_blank()) {
      budget_.poll();
      const char c = *p_;
      if (c == '-' || c == '=') {
        while (p_ < end_ && *p_ == c) ++p_;
        ++separators;
        open = false;
        fresh_session = fresh_session || c == '=';
        continue;
      }
      if (c != 'r' && c != 'w') bad("'r', 'w', a line of '-' or a line of '='");
      ++p_;
      const std::uint64_t key = number();
      const std::uint64_t value = number();
      while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r')) ++p_;
      if (p_ < end_ && *p_ != '\n' && *p_ != '-' && *p_ != '=') bad("the end of the line");
      if (!open) {
        const std::int32_t session = fresh_session ? h_.sessions : h_.sessions - 1;
        h_.begin_transaction(session, Status::committed, h_.transactions() + 1, line_);
        open = true;
        fresh_session = false;
      }
      h_.add_op(c == 'w' ? OpKind::write : OpKind::read, h_.key_of(keys_.natural(key)), values_.natural(value), line_);
      ++ops;
    }
    if (ops == 0)
      fail_line(name_, line_, "no operations (got an empty history, expected `r key value` or `w key value`)");
    remarks.emplace_back("lines", line_);
    remarks.emplace_back("separators", separators);
    // Separators with no operation between them create neither a transaction nor a session.
    remarks.emplace_back("idle_separators", separators - (h_.transactions() - 1));
  }

 private:
  void skip_blank() {
    for (; p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r' || *p_ == '\n'); ++p_) line_ += *p_ == '\n' ? 1 : 0;
  }

  std::uint64_t number() {
    const char* const before = p_;
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t')) ++p_;
    if (p_ == before) bad("a blank and a number");
    std::uint64_t n = 0;
    if (read_short_number(p_, end_, n)) return n;
    const auto [stop, error] = std::from_chars(p_, end_, n);
    if (error == std::errc::result_out_of_range) bad("a number below 2^64");
    if (error != std::errc{}) bad("a number");
    p_ = stop;
    return n;
  }

  [[noreturn]] void bad(const std::string& what) const {
    const char* stop = p_;
    while (stop < end_ && *stop != '\n' && *stop != '\r' && stop - p_ < 60) ++stop;
    fail_line(
        name_, line_,
        "expected " + what + " (got " +
            (stop == p_ ? std::string("the end of the line") : quoted({p_, static_cast<std::size_t>(stop - p_)})) +
            ", expected `r key value` or `w key value`)");
  }

  const char* p_;
  const char* end_;
  const std::string& name_;
  History& h_;
  Numbers keys_, values_;
  Budget& budget_;
  std::int64_t line_ = 1;
};

}  // namespace

Reading read_awdit(std::string_view data, const std::string& name, Budget& budget) {
  check_size(name, data.size());
  Reading out;
  Awdit(data, name, out.history, budget).run(out.remarks);
  return out;
}

}  // namespace isolang
