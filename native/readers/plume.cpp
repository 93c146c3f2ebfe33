// Text of Plume, PolySI and IsoVista. It has one operation on each line, `r(key,value,session,txn)`, and txn -1 means
// aborted.
//
// A transaction consists of all lines with its id, in their order, even if lines of other transactions of its session
// are between them. Its position in the session is that of its first line. Aborted lines carry no id, so each maximal
// run of them in a session is one aborted transaction.
//
// As long as no line lies apart from the others of its transaction, each line is added to the history at once. The
// first line that does so sets the lines aside, to be sorted at the end.
#include <algorithm>
#include <charconv>
#include <utility>

#include "readers/common.hpp"

namespace isolang {
namespace {

struct Line {
  std::int32_t txn;
  std::int32_t key, value;  // atoms
  bool write;
};

class Plume {
 public:
  // What follows `data` comes from `more`, unless it is null.
  Plume(std::string_view data, const TextInPieces* more, const std::string& name, History& history, Budget& budget)
      : p_(data.data()), end_(data.data() + data.size()), more_(more), name_(name), h_(history), keys_(history.key_atoms),
        values_(history.values), budget_(budget) {}

  void run(Remarks& remarks) {
    const std::int32_t zero = values_.natural(0);
    const std::size_t bytes = idx(end_ - p_);
    expect_lines(h_, {p_, bytes}, more_ == nullptr ? bytes : more_->bytes);
    while (p_ < end_ || next_piece()) {
      budget_.poll();
      ++line_;
      const char* q = p_;
      while (q < end_ && (*q == ' ' || *q == '\t' || *q == '\r')) ++q;
      if (q < end_ && *q == '\n') {  // a blank line
        ++blank_;
        p_ = q + 1;
        continue;
      }
      if (q == end_) {
        p_ = end_;
        continue;
      }
      operation(zero);
    }
    if (h_.transactions() == 0)
      fail_line(name_, line_, "no operations (got an empty history, expected r(key,value,session,txn) lines)");
    if (apart_) emit(zero);
    remarks.emplace_back("lines", line_);
    remarks.emplace_back("blank_lines", blank_);
    remarks.emplace_back("zero_writes", zero_writes_);
    remarks.emplace_back("aborted_lines", aborted_lines_);
    remarks.emplace_back("aborted_transactions", aborted_txns_);
    remarks.emplace_back("interleaved_lines", interleaved_);
    remarks.emplace_back("session_labels", session_labels_);
  }

 private:
  // Goes on with the next lines of the text. Returns false if there are none.
  bool next_piece() {
    if (more_ == nullptr) return false;
    const std::string_view lines = more_->next();
    p_ = lines.data();
    end_ = p_ + lines.size();
    return !lines.empty();
  }

  void operation(std::int32_t zero) {
    start_ = p_;
    if (*p_ != 'r' && *p_ != 'w') bad("'r' or 'w'");
    const bool write = *p_++ == 'w';
    sign('(');
    const std::int32_t key = keys_.natural(natural());
    sign(',');
    const std::int32_t value = values_.natural(natural());
    sign(',');
    const std::int64_t session_label = number();
    sign(',');
    const bool aborted = p_ < end_ && *p_ == '-';
    if (aborted) ++p_;
    const char* const digits = p_;
    const std::int64_t label = number();
    if (aborted && (label != 1 || *digits != '1')) {
      p_ = digits;
      bad("-1, which means aborted, or a transaction id");
    }
    sign(')');
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r')) ++p_;
    if (p_ < end_ && *p_ != '\n') bad("the end of the line");
    if (p_ < end_) ++p_;

    const std::int32_t session = session_of(session_label);
    auto& current = current_[static_cast<std::size_t>(session)];  // the transaction of the session's previous line
    std::int32_t txn = current;
    if (aborted) {
      ++aborted_lines_;
      if (txn < 0 || h_.txn_number[idx(txn)] >= 0) {
        ++aborted_txns_;
        txn = begin(-1, session);
      }
    } else if (txn < 0 || h_.txn_number[idx(txn)] != label) {
      const auto id = static_cast<std::size_t>(ids_.intern_integer(label));
      if (id > txn_of_.size()) {
        txn_of_.push_back(begin(label, session));
      } else {
        const auto earlier = idx(txn_of_[id - 1]);
        if (h_.txn_session[earlier] != session)
          fail_line(name_, line_,
                    "the transaction id " + std::to_string(label) + " was used in session " +
                        std::to_string(session_labels_[idx(h_.txn_session[earlier])]) + " on line " +
                        std::to_string(h_.txn_position[earlier]) + " (got session " + std::to_string(session_label) +
                        "); hint: transaction ids are unique over all sessions");
        ++interleaved_;
      }
      txn = txn_of_[id - 1];
    }
    current = txn;
    if (write && value == zero) ++zero_writes_;
    if (!apart_ && txn + 1 < h_.transactions()) set_aside();
    if (apart_) {
      lines_.push_back({txn, key, value, write});
      line_of_.push_back(line_);
    } else {
      h_.add_op(write ? OpKind::write : OpKind::read, h_.key_of(key, zero), value, line_);
    }
  }

  std::int32_t begin(std::int64_t label, std::int32_t session) {
    return h_.begin_transaction(session, label < 0 ? Status::aborted : Status::committed, label, line_);
  }

  // Turns the operations back into lines, so that all lines can be sorted at the end. From here on, the transactions of
  // the history have no operations until then.
  void set_aside() {
    apart_ = true;
    for (std::int32_t t = 0; t < h_.transactions(); ++t)
      for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op) {
        lines_.push_back({t, h_.key_atom[h_.op_key[op]], h_.op_value[op], h_.kind(op) == OpKind::write});
        line_of_.push_back(h_.op_position[op]);
      }
    h_.op_kind = std::vector<std::uint8_t>();
    h_.op_key = std::vector<std::int32_t>();
    h_.op_value = std::vector<std::int32_t>();
    h_.op_ok = {};
    h_.op_source = {};
    h_.op_position = {};
  }

  std::int32_t session_of(std::int64_t label) {
    if (!session_labels_.empty() && session_labels_[static_cast<std::size_t>(session_)] == label) return session_;
    const auto id = static_cast<std::size_t>(session_ids_.intern_integer(label));
    if (id > session_labels_.size()) {
      session_labels_.push_back(label);
      current_.push_back(-1);
    }
    return session_ = static_cast<std::int32_t>(id) - 1;
  }

  // Turns the lines into operations, grouped by transaction (a counting sort, which keeps the order inside each
  // transaction).
  void emit(std::int32_t zero) {
    const std::size_t txns = h_.txn_number.size();
    std::vector<std::size_t> end(txns + 1, 0);  // the ends of the transactions, when all lines have been put there
    for (const Line& line : lines_) ++end[idx(line.txn) + 1];
    for (std::size_t t = 0; t < txns; ++t) end[t + 1] += end[t];
    std::vector<std::size_t> order(lines_.size());
    for (std::size_t i = 0; i < lines_.size(); ++i) order[end[idx(lines_[i].txn)]++] = i;
    History sorted;
    sorted.key_atoms = std::move(h_.key_atoms);
    sorted.values = std::move(h_.values);
    std::size_t at = 0;
    for (std::size_t t = 0; t < txns; ++t) {
      budget_.poll();
      sorted.begin_transaction(h_.txn_session[t], static_cast<Status>(h_.txn_status[t]), h_.txn_number[t],
                               h_.txn_position[t]);
      for (; at < end[t]; ++at) {
        const Line& line = lines_[order[at]];
        sorted.add_op(line.write ? OpKind::write : OpKind::read, sorted.key_of(line.key, zero), line.value,
                      line_of_[order[at]]);
      }
    }
    h_ = std::move(sorted);
  }

  void sign(char c) {
    if (p_ == end_ || *p_ != c) bad("'" + std::string(1, c) + "'");
    ++p_;
  }

  std::uint64_t natural() {
    std::uint64_t n = 0;
    if (read_short_number(p_, end_, n)) return n;
    const auto [stop, error] = std::from_chars(p_, end_, n);
    if (error == std::errc::result_out_of_range) bad("a number below 2^64");
    if (error != std::errc{}) bad("a number");
    p_ = stop;
    return n;
  }

  std::int64_t number() {
    if (std::uint64_t few = 0; read_short_number(p_, end_, few)) return static_cast<std::int64_t>(few);
    std::int64_t n = 0;
    const auto [stop, error] = std::from_chars(p_, end_, n);
    if (error == std::errc::result_out_of_range) bad("a number below 2^63");
    if (error != std::errc{} || n < 0) bad("a number");
    p_ = stop;
    return n;
  }

  [[noreturn]] void bad(const std::string& what) const {
    const char* stop = start_;
    while (stop < end_ && *stop != '\n' && *stop != '\r' && stop - start_ < 60) ++stop;
    fail_line(name_, line_, "expected " + what + " at column " + std::to_string(p_ - start_ + 1) + " (got " +
                                quoted({start_, static_cast<std::size_t>(stop - start_)}) +
                                ", expected r(key,value,session,txn) or w(key,value,session,txn))");
  }

  const char* p_;
  const char* end_;
  const TextInPieces* more_;
  const char* start_ = nullptr;  // start of the line
  const std::string& name_;
  History& h_;
  Numbers keys_, values_;
  Budget& budget_;
  std::int64_t line_ = 0;
  Atoms ids_, session_ids_;  // used only for their hash tables: label → dense number (atom 0 is nil)
  std::vector<std::int32_t> txn_of_;
  std::vector<std::int64_t> session_labels_;
  std::int32_t session_ = 0;  // that of the last line
  std::vector<std::int32_t> current_;
  bool apart_ = false;  // whether some line lies apart from the others of its transaction
  std::vector<Line> lines_;  // all lines, if one of them does
  std::vector<std::int64_t> line_of_;
  std::int64_t blank_ = 0, zero_writes_ = 0, aborted_lines_ = 0, aborted_txns_ = 0, interleaved_ = 0;
};

}  // namespace

Reading read_plume(std::string_view data, const std::string& name, Budget& budget) {
  check_size(name, data.size());
  Reading out;
  Plume(data, nullptr, name, out.history, budget).run(out.remarks);
  return out;
}

Reading read_plume(const TextInPieces& text, const std::string& name, Budget& budget) {
  check_size(name, text.bytes);
  Reading out;
  Plume(text.next(), &text, name, out.history, budget).run(out.remarks);
  return out;
}

}  // namespace isolang
