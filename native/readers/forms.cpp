// A `Forms` is a position in the text. Each function reads one form and moves the position behind it. Frequent cases
// are inline in the header. This file contains the slower cases: strings with escapes, floats, comments, and canonical
// texts.
#include "readers/forms.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace isolang {
namespace {

constexpr int kMaxNesting = 64;           // nesting of a value that becomes canonical text
constexpr std::size_t kMaxSkipNesting = 10'000;

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0U | code >> 6U);
    out += static_cast<char>(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0U | code >> 12U);
    out += static_cast<char>(0x80U | (code >> 6U & 0x3fU));
    out += static_cast<char>(0x80U | (code & 0x3fU));
  } else {
    out += static_cast<char>(0xf0U | code >> 18U);
    out += static_cast<char>(0x80U | (code >> 12U & 0x3fU));
    out += static_cast<char>(0x80U | (code >> 6U & 0x3fU));
    out += static_cast<char>(0x80U | (code & 0x3fU));
  }
}

// Returns a double with the fewest digits that reproduce it, laid out as by Python's repr. A value thus has the same
// text in all readers and in Python.
std::string text_of(double value) {
  char buffer[32];
  const auto [stop, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  (void)error;  // the buffer is large enough
  std::string digits;
  const char* p = buffer;
  for (; *p != 'e'; ++p)
    if (is_digit(*p)) digits += *p;
  int exponent = 0;
  std::from_chars(p + (p[1] == '+' ? 2 : 1), stop, exponent);
  const int point = exponent + 1;  // how many digits are before the point
  const bool scientific = exponent < -4 || exponent >= 16;
  std::string out(*buffer == '-' ? 1 : 0, '-');
  const auto zeros = [&out](int n) { out.append(static_cast<std::size_t>(std::max(n, 0)), '0'); };
  const auto whole = static_cast<std::size_t>(scientific ? 1 : std::clamp(point, 0, static_cast<int>(digits.size())));
  out.append(digits, 0, whole);
  if (whole == 0) out += '0';
  if (!scientific) zeros(point - static_cast<int>(digits.size()));
  if (!scientific || whole < digits.size()) out += '.';
  if (!scientific) zeros(-point);
  out.append(digits, whole);
  if (out.back() == '.') out += '0';
  if (scientific) {
    out += exponent < 0 ? "e-" : "e+";
    if (std::abs(exponent) < 10) out += '0';
    out += std::to_string(std::abs(exponent));
  }
  return out;
}

// Returns whether the token begins like a number. EDN symbols may begin neither with a digit nor with a sign and a
// digit.
bool starts_number(std::string_view token) {
  if (token.empty()) return false;
  if (is_digit(token[0])) return true;
  return token.size() > 1 && (token[0] == '-' || token[0] == '+') && is_digit(token[1]);
}

constexpr std::size_t kMostSlips = 2, kLongestName = 32;

// Returns whether one name becomes the other by at most two slips: a letter too many, a letter too few, another letter,
// or two letters exchanged. This is the optimal string alignment distance.
bool is_slip(std::string_view name, std::string_view meant) {
  if (name.empty() || name.size() > kLongestName || meant.size() <= kMostSlips) return false;
  std::vector<std::size_t> before(meant.size() + 1), last(meant.size() + 1), now(meant.size() + 1);
  for (std::size_t j = 0; j <= meant.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= name.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= meant.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (name[i - 1] == meant[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && name[i - 1] == meant[j - 2] && name[i - 2] == meant[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[meant.size()] <= kMostSlips;
}

}  // namespace

std::string Forms::missing(Mark map, std::string_view field, std::span<const std::string_view> known,
                           const std::string& got, const std::string& otherwise) {
  const Mark after = mark();
  const std::int64_t first_line = map.line;
  std::string shown = got, expected = otherwise, hint;
  back_to(map);
  next();
  for (blank(); peek() != '}'; blank()) {
    const Mark key = mark();
    const bool named = peek() == ':' || peek() == '"';
    const std::string name(named ? word() : std::string_view{});
    if (!named) skip();
    const std::string text(since(key));
    blank();
    skip();
    if (name == field) {
      shown = got;
      expected = otherwise;
      hint.clear();
      break;
    }
    if (!hint.empty() || std::ranges::find(known, std::string_view(name)) != known.end()) continue;
    if (!is_slip(name, field)) continue;
    expected = quoted(text.front() == ':' ? ":" + std::string(field) : "\"" + std::string(field) + "\"");
    shown = quoted(text) + at_column(key, first_line);
    hint = "; did you mean " + expected + "?";
  }
  back_to(after);
  std::string message = "(";
  if (!shown.empty()) message += "got " + shown + ", ";
  return message + "expected " + expected + ")" + hint;
}

std::string Forms::here() const {
  if (at_end()) return "the end of the file";
  const char* q = p_;
  const bool text = *q == '"';
  while (q < end_ && q - p_ < 60 && (in_token(*q) || (text && (*q != '"' || q == p_) && *q != '\n'))) ++q;
  if (q == p_ || (text && q < end_ && *q == '"')) ++q;  // a bracket, or the end of a string
  return quoted({p_, static_cast<std::size_t>(q - p_)}) + at_column(mark(), line_);
}

std::int64_t Forms::column(Mark mark) const {
  const char* start = mark.p;
  while (start > begin_ && start[-1] != '\n') --start;
  return mark.p - start + 1;
}

std::string Forms::at_column(Mark mark, std::int64_t line) const {
  const std::string said = " at column " + std::to_string(column(mark));
  return mark.line == line ? said : said + " of line " + std::to_string(mark.line);
}

std::string Forms::shown() {
  if (at_end()) return "the end of the file";
  const Mark start = mark();
  if (const char c = peek(); c == ')' || c == ']' || c == '}') {
    next();
  } else {
    skip();
  }
  return quoted(since(start));
}

void Forms::expected(const std::string& what, const std::string& hint) const {
  fail("expected " + what + " (got " + here() + ")" + (hint.empty() ? "" : "; hint: " + hint));
}

// Skips a comment or a discarded form at ';' or '#'. Returns whether there was one.
bool Forms::slow_blank() {
  if (*p_ == ';') {
    const auto* newline = static_cast<const char*>(std::memchr(p_, '\n', static_cast<std::size_t>(end_ - p_)));
    p_ = newline == nullptr ? end_ : newline;
    return true;
  }
  if (end_ - p_ < 2 || p_[1] != '_') return false;
  // `#_ #_ a b` discards both a and b. The discards are counted instead of handled by recursion, because the input
  // decides how many there are.
  std::int64_t pending = 0;
  while (true) {
    while (p_ < end_ && (class_of(*p_) == Class::blank || class_of(*p_) == Class::newline))
      line_ += *p_++ == '\n' ? 1 : 0;
    if (end_ - p_ >= 2 && p_[0] == '#' && p_[1] == '_') {
      ++pending;
      p_ += 2;
    } else if (p_ < end_ && *p_ == ';') {
      const auto* newline = static_cast<const char*>(std::memchr(p_, '\n', static_cast<std::size_t>(end_ - p_)));
      p_ = newline == nullptr ? end_ : newline;
    } else if (pending == 0) {
      return true;
    } else {
      skip();
      --pending;
    }
  }
}

void Forms::skip() {
  open_.clear();
  bool done = false;
  while (!done || !open_.empty()) {
    while (p_ < end_ && (class_of(*p_) == Class::blank || class_of(*p_) == Class::newline ||
                         (json_ && class_of(*p_) == Class::colon)))
      line_ += *p_++ == '\n' ? 1 : 0;
    if (at_end())
      fail("the file ends inside a form (expected " + (open_.empty() ? "a value" : quoted({&open_.back(), 1})) +
           "); hint: truncated");
    const char c = *p_;
    switch (c) {
      case '(':
      case '[':
      case '{':
        if (open_.size() == kMaxSkipNesting) fail("more than 10000 nested brackets");
        open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
        ++p_;
        break;
      case ')':
      case ']':
      case '}':
        if (open_.empty()) expected("a value");
        if (open_.back() != c)
          expected(quoted({&open_.back(), 1}), "a bracket before it is not closed, or one too many here");
        open_.pop_back();
        ++p_;
        done = true;
        break;
      case '"':
        ++p_;
        string();
        done = true;
        break;
      case '\\':
        character();
        done = true;
        break;
      case ';': {
        const auto* newline = static_cast<const char*>(std::memchr(p_, '\n', static_cast<std::size_t>(end_ - p_)));
        p_ = newline == nullptr ? end_ : newline;
        break;
      }
      case '#':
        ++p_;
        // `#{` begins a set; `#_` and a tag precede the form that they belong to.
        if (p_ < end_ && *p_ == '_') {
          ++p_;
        } else if (p_ < end_ && *p_ == '"') {
          regex();
          done = true;
        } else if (p_ < end_ && *p_ != '{') {
          const std::string_view tag = token();
          if (tag.empty()) expected("a tag or '{' after '#'");
          done = tag[0] == '#';  // ##Inf is a form by itself
        }
        break;
      default:
        if (token().empty()) expected("a value");
        done = true;
    }
  }
}

// Reads the rest of a string. It is called only at a string, with p_ after the opening quote.
std::string_view Forms::string() {
  const char* const start = p_;
  const Mark quote{start - 1, line_};
  const auto unfinished = [&]() {
    fail_line(name_, quote.line, "the file ends inside the string that begins" + at_column(quote, quote.line) +
                                     "; hint: truncated, or a quote is missing");
  };
  unsigned char high = 0;
  while (p_ < end_ && *p_ != '"' && *p_ != '\\') {
    high |= static_cast<unsigned char>(*p_);
    line_ += *p_ == '\n' ? 1 : 0;
    ++p_;
  }
  if (at_end()) unfinished();
  if (*p_ == '"') {
    const std::string_view text(start, static_cast<std::size_t>(p_ - start));
    ++p_;
    if (high >= 0x80) valid_text(text);
    return text;
  }
  scratch_.assign(start, p_);
  const auto hex4 = [&]() -> std::uint32_t {  // p_ after the 'u'
    std::uint32_t code = 0;
    if (end_ - p_ < 4) unfinished();
    const auto [stop, error] = std::from_chars(p_, p_ + 4, code, 16);
    if (error != std::errc{} || stop != p_ + 4) fail("a \\u escape without four hexadecimal digits in a string");
    p_ += 4;
    return code;
  };
  while (p_ < end_ && *p_ != '"') {
    const char c = *p_++;
    if (c != '\\') {
      line_ += c == '\n' ? 1 : 0;
      scratch_ += c;
      continue;
    }
    if (at_end()) break;
    const char escape = *p_++;
    switch (escape) {
      case 'n': scratch_ += '\n'; break;
      case 't': scratch_ += '\t'; break;
      case 'r': scratch_ += '\r'; break;
      case 'b': scratch_ += '\b'; break;
      case 'f': scratch_ += '\f'; break;
      case '"':
      case '\\':
      case '/': scratch_ += escape; break;
      case 'u': {
        std::uint32_t code = hex4();
        if (code >= 0xd800 && code < 0xdc00 && end_ - p_ >= 2 && p_[0] == '\\' && p_[1] == 'u') {
          p_ += 2;
          const std::uint32_t low = hex4();
          if (low < 0xdc00 || low >= 0xe000) fail("an unpaired surrogate in a string");
          code = 0x10000 + ((code - 0xd800) << 10U) + (low - 0xdc00);
        } else if (code >= 0xd800 && code < 0xe000) {
          fail("an unpaired surrogate in a string");
        }
        append_utf8(scratch_, code);
        break;
      }
      default: fail("unknown escape in a string (got " + quoted({p_ - 2, 2}) + ")");
    }
  }
  if (at_end()) unfinished();
  ++p_;
  valid_text(scratch_);
  return scratch_;
}

std::string_view Forms::regex() {
  const char* const start = p_++;
  for (; p_ < end_ && *p_ != '"'; ++p_) {
    if (*p_ == '\\' && end_ - p_ > 1) ++p_;
    line_ += *p_ == '\n' ? 1 : 0;
  }
  if (at_end()) fail("the file ends inside a regular expression; hint: truncated, or a quote is missing");
  ++p_;
  return {start, static_cast<std::size_t>(p_ - start)};
}

void Forms::character() {
  ++p_;
  if (at_end()) fail("the file ends inside a character; hint: truncated");
  line_ += *p_ == '\n' ? 1 : 0;
  ++p_;  // one character of any kind, even a bracket: \{
  token();
}

void Forms::valid_text(std::string_view text) const {
  if (!is_utf8(text)) fail("text that is not valid UTF-8 (got " + quoted(text) + ")");
}

std::string_view Forms::word() {
  if (peek() == '"') {
    ++p_;
    return string();
  }
  std::string_view text = token();
  if (text.size() > 1 && text[0] == ':') text.remove_prefix(1);
  if (starts_number(text)) return {};
  return text;
}

bool Forms::integer(std::int64_t& n) {
  const char* q = p_;
  if (q < end_ && *q == '+') ++q;
  const auto [stop, error] = std::from_chars(q, end_, n);
  if (error != std::errc{} || (q != p_ && *q == '-')) return false;
  const char* after = stop;
  if (after < end_ && *after == 'N') ++after;
  if (after < end_ && in_token(*after)) return false;
  p_ = after;
  return true;
}

// Parses a token that begins like a number. Returns true for an integer of 64 bits, which is then in `natural` and
// `negative`. Otherwise, returns false, and `text` is the canonical text.
bool Forms::number(std::string_view token, std::string& text, std::uint64_t& natural, bool& negative) const {
  negative = token[0] == '-';
  std::string_view digits = token;
  if (digits[0] == '-' || digits[0] == '+') digits.remove_prefix(1);
  const auto bad = [&](const char* why) {
    fail(std::string(why) + " (got " + quoted(token) + at_column({token.data(), line_}, line_) + ")");
  };
  const std::size_t whole =
      static_cast<std::size_t>(std::find_if_not(digits.begin(), digits.end(), is_digit) - digits.begin());
  if (whole > 1 && digits[0] == '0') bad("a number with a leading zero");
  const std::string_view rest = digits.substr(whole);
  if (rest.empty() || rest == "N") {
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + whole, natural);
    (void)stop;
    if (error == std::errc{} && (!negative || natural <= std::uint64_t{1} << 63U)) return true;
    text.assign(negative ? 1 : 0, '-');
    text += digits.substr(0, whole);
    return false;
  }
  text = token[0] == '+' ? std::string(token.substr(1)) : std::string(token);
  if (rest[0] == '/') {  // a ratio: Clojure prints it reduced
    if (rest.size() < 2 || !std::all_of(rest.begin() + 1, rest.end(), is_digit)) bad("a malformed number");
    return false;
  }
  const bool decimal = rest.back() == 'M';
  const std::string_view body = digits.substr(0, digits.size() - (decimal ? 1 : 0));
  double value = 0;
  const auto [stop, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (stop != body.data() + body.size() || error == std::errc::invalid_argument) bad("a malformed number");
  if (decimal || error != std::errc{}) return false;  // arbitrary precision, or too large for a double: unchanged
  text = text_of(negative && value != 0 ? -value : value);  // -0.0 equals 0.0
  return false;
}

std::int32_t Forms::slow_atom(Atoms& atoms, Numbers& numbers) {
  const char c = peek();
  if (c == '"') {
    ++p_;
    return atoms.intern_text(AtomKind::string, string());
  }
  if (in_token(c) && !at_end() && c != '#' && c != '\\') {
    const Mark start = mark();
    const std::string_view text = token();
    if (text[0] == ':') {
      if (text.size() == 1) {
        back_to(start);
        expected("a keyword");
      }
      valid_text(text);
      return atoms.intern_text(AtomKind::keyword, text.substr(1));
    }
    if (starts_number(text)) {
      std::string canonical_text;
      std::uint64_t natural = 0;
      bool negative = false;
      if (!number(text, canonical_text, natural, negative)) return atoms.intern_text(AtomKind::other, canonical_text);
      if (!negative) return numbers.natural(natural);
      return numbers.integer(static_cast<std::int64_t>(std::uint64_t{0} - natural));
    }
    if (text == "nil" || (json_ && text == "null")) return kNil;
    valid_text(text);
    return atoms.intern_text(AtomKind::other, text);
  }
  std::string text;
  canonical(text, 0);
  return atoms.intern_text(AtomKind::other, text);
}

// Appends the canonical text. Two forms that are equal in EDN get the same text: one blank separates elements, lists
// become vectors (Clojure's =), and the elements of sets and maps are sorted by their texts.
void Forms::canonical(std::string& out, int depth) {
  if (depth > kMaxNesting) fail("a value nested more than 64 deep");
  blank();
  const char c = peek();
  const auto elements = [&](char close, int each) {
    std::vector<std::string> texts;
    for (blank(); peek() != close; blank()) {
      std::string text;
      for (int i = 0; i < each; ++i) {
        if (i > 0) text += ' ';
        canonical(text, depth + 1);
      }
      texts.push_back(std::move(text));
    }
    ++p_;
    return texts;
  };
  const auto join = [&](const char* open, const std::vector<std::string>& texts, char close) {
    out += open;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (i > 0) out += ' ';
      out += texts[i];
    }
    out += close;
  };
  if (c == '(' || c == '[') {
    ++p_;
    join("[", elements(c == '(' ? ')' : ']', 1), ']');
  } else if (c == '{') {
    ++p_;
    auto texts = elements('}', 2);
    std::sort(texts.begin(), texts.end());
    join("{", texts, '}');
  } else if (c == '#' && end_ - p_ >= 2 && p_[1] == '{') {
    p_ += 2;
    auto texts = elements('}', 1);
    std::sort(texts.begin(), texts.end());
    join("#{", texts, '}');
  } else if (c == '#' && end_ - p_ >= 2 && p_[1] == '"') {
    ++p_;
    out += '#';
    const std::string_view text = regex();
    valid_text(text);
    out += text;
  } else if (c == '#') {
    ++p_;
    const std::string_view tag = token();
    if (tag.empty()) expected("a tag or '{' after '#'");
    valid_text(tag);
    out += '#';
    out += tag;
    if (tag[0] == '#') return;  // ##Inf, ##NaN
    out += ' ';
    canonical(out, depth + 1);
  } else if (c == '"') {
    ++p_;
    out += '"';
    for (const char each : string()) {
      if (each == '"' || each == '\\') out += '\\';
      out += each;
    }
    out += '"';
  } else if (c == '\\') {
    const Mark start = mark();
    character();
    valid_text(since(start));
    out += since(start);
  } else if (!at_end() && in_token(c)) {
    const std::string_view text = token();
    std::uint64_t natural = 0;
    bool negative = false;
    if (!starts_number(text)) {
      valid_text(text);
      out += json_ && text == "null" ? "nil" : text;
    } else if (std::string number_text; number(text, number_text, natural, negative)) {
      out += negative && natural > 0 ? "-" : "";
      out += std::to_string(natural);
    } else {
      out += number_text;
    }
  } else {
    expected("a value");
  }
}

}  // namespace isolang
