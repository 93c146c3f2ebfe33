// Checks whether a text is JSON (RFC 8259), in one pass and without storing it.
//
// The reader of forms treats commas and colons as blanks, as EDN does with commas. In JSON they are not, and a log that
// has lost a character would be read as a different history. The whole text is therefore checked before it is read. If
// there are several values, each must begin on a separate line.
#include <algorithm>
#include <array>
#include <vector>

#include "core/budget.hpp"
#include "readers/forms.hpp"

namespace isolang {
namespace {

constexpr std::size_t kMaxBrackets = 10'000;

// For each character, whether it may appear without an escape between the quotes of a string.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> table{};
  for (std::size_t c = 0x20; c < 256; ++c) table[c] = c != '"' && c != '\\';
  return table;
}();

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

// Parses the text from `p_` on; an error names the place of `p_`.
class Forms::JsonSyntax {
 public:
  JsonSyntax(Forms& forms, Budget& budget) : forms_(forms), budget_(budget), p_(forms.p_), end_(forms.end_) {}

  void check() {
    blank();
    while (p_ < end_) {
      value();
      const char* const after = p_;
      blank();
      if (p_ < end_ && std::find(after, p_, '\n') == p_)
        expected("the end of the line after a value", "one value a line, or all in one list");
    }
  }

 private:
  // Checks one value, with everything that it contains.
  void value() {
    while (true) {
      if (p_ == end_) ends();
      if (const char c = *p_; c == '"') {
        string();
      } else if (c == '[' || c == '{') {
        open(c);
        if (p_ == end_) ends();
        if (*p_ != open_.back()) {
          if (c == '{') name();
          continue;
        }
      } else {
        scalar();
      }
      if (!next()) return;
    }
  }

  void open(char c) {
    if (open_.size() == kMaxBrackets) fail("more than 10000 nested brackets");
    open_.push_back(c == '[' ? ']' : '}');
    ++p_;
    blank();
  }

  // After a value: closes the brackets that end here, and goes to the next value. Returns false if everything is
  // closed.
  bool next() {
    while (!open_.empty()) {
      budget_.poll();
      blank();
      if (p_ == end_) ends("',' or ");
      if (*p_ == ',') {
        ++p_;
        blank();
        if (open_.back() == '}') name();
        return true;
      }
      if (*p_ != open_.back()) expected("',' or " + quoted({&open_.back(), 1}));
      open_.pop_back();
      ++p_;
    }
    return false;
  }

  void name() {
    if (p_ == end_) ends();
    if (*p_ != '"') expected("a field name in quotes");
    string();
    blank();
    if (p_ == end_ || *p_ != ':') expected("':' after the name of a field");
    ++p_;
    blank();
  }

  void blank() {
    while (p_ < end_ && is_blank(*p_)) ++p_;
  }

  // Checks a string, from its opening quote. The meaning of an escape is checked only when the text
  // is read.
  void string() {
    for (++p_; p_ < end_ && *p_ != '"'; ++p_) {
      if (kPlain[static_cast<unsigned char>(*p_)]) continue;
      if (*p_ != '\\')
        fail("a control character in a string (got " + quoted({p_, 1}) + ", expected an escape); hint: a quote is missing");
      if (++p_ == end_) break;
    }
    if (p_ == end_) fail("the file ends inside a string; hint: truncated, or a quote is missing");
    ++p_;
  }

  // Checks a number, or one of three words.
  void scalar() {
    const char* const start = p_;
    const bool fine = *p_ == '-' || is_digit(*p_) ? number() : word("true") || word("false") || word("null");
    if (fine && (p_ == end_ || !forms_.in_token(*p_))) return;
    p_ = start;
    expected("a JSON value", "a text stands in quotes, and a number is one of JSON's");
  }

  bool word(std::string_view word) {
    if (!std::string_view(p_, static_cast<std::size_t>(end_ - p_)).starts_with(word)) return false;
    p_ += word.size();
    return true;
  }

  bool digits() {
    const char* const start = p_;
    while (p_ < end_ && is_digit(*p_)) ++p_;
    return p_ > start;
  }

  bool number() {
    if (*p_ == '-') ++p_;
    if (p_ < end_ && *p_ == '0')
      ++p_;
    else if (!digits())
      return false;
    if (p_ < end_ && *p_ == '.' && (++p_, !digits())) return false;
    if (p_ == end_ || (*p_ != 'e' && *p_ != 'E')) return true;
    ++p_;
    if (p_ < end_ && (*p_ == '-' || *p_ == '+')) ++p_;
    return digits();
  }

  // Fails because the text ends inside an open bracket.
  [[noreturn]] void ends(const std::string& other = "") {
    const bool list = open_.back() == ']';
    fail(std::string("the file ends inside ") + (list ? "a list" : "an object") + " (expected " + other +
         quoted({&open_.back(), 1}) + "); hint: truncated");
  }
  [[noreturn]] void fail(const std::string& what) {
    move_reader_here();
    forms_.fail(what);
  }
  [[noreturn]] void expected(const std::string& what, const std::string& hint = "") {
    move_reader_here();
    forms_.expected(what, hint);
  }
  // Moves the reader of forms to this position. Lines are counted only here.
  void move_reader_here() {
    forms_.line_ += std::count(forms_.p_, p_, '\n');
    forms_.p_ = p_;
  }

  Forms& forms_;
  Budget& budget_;
  const char* p_;
  const char* const end_;
  std::vector<char> open_;  // the closing brackets that are still expected
};

void Forms::read_json(Budget& budget) {
  json_ = true;
  const Mark start = mark();
  back_to({begin_, 1});
  JsonSyntax(*this, budget).check();
  back_to(start);
}

}  // namespace isolang
