// Functions used by all readers: they form error messages, check the size limit, and intern numbers fast.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "readers/readers.hpp"

namespace isolang {

// Throw an error with the message "NAME: line 12: what". Without a name, the message begins at
// "line".
[[noreturn]] void fail_line(const std::string& name, std::int64_t line, const std::string& what);
[[noreturn]] void fail_byte(const std::string& name, std::int64_t byte, const std::string& what);
// Throw an error with the message "NAME: WHERE: what", for a position that is more than a line or a
// byte.
[[noreturn]] void fail_at(const std::string& name, const std::string& where, const std::string& what, std::int64_t line);
[[noreturn]] void unsupported_line(const std::string& name, std::int64_t line, const std::string& what);
[[noreturn]] void unsupported_byte(const std::string& name, std::int64_t byte, const std::string& what);

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads a number of at most 18 digits, as nearly all numbers are. Returns false, and leaves `p` as it is, if the text
// does not begin with such a number.
inline bool read_short_number(const char*& p, const char* end, std::uint64_t& number) {
  constexpr std::ptrdiff_t kDigits = 18;
  const char* const last = end - p > kDigits ? p + kDigits : end;
  const char* q = p;
  std::uint64_t n = 0;
  while (q < last && is_digit(*q)) n = 10 * n + static_cast<std::uint64_t>(*q++ - '0');
  if (q == p || (q < end && is_digit(*q))) return false;
  p = q;
  number = n;
  return true;
}

// Returns input bytes in the form used by messages: short, printable, in quotes.
std::string quoted(std::string_view text);
// Returns one byte of a binary file in the form used by messages, such as 'S' (0x53) or 0xff.
std::string quoted_byte(unsigned char byte);

// Below this size, every index that a reader makes (atoms, transactions, lists) fits 31 bits: a transaction takes at
// least 9 bytes (bincode, and `[:r 1 []]` for each list), and a new atom at least 11 (ten digits and a separator).
inline constexpr std::uint64_t kMaxInput = std::uint64_t{16} << 30;
void check_size(const std::string& name, std::uint64_t bytes);

// Reserves room for about as many operations as a text of so many bytes has lines, judging by its start. What is not filled takes
// no memory.
void expect_lines(History& history, std::string_view start, std::size_t bytes);

// Interns numbers as atoms. A small number (in practice, nearly every number is small) takes one array access. Any
// other number takes one probe of a hash table.
class Numbers {
 public:
  explicit Numbers(Atoms& atoms) : atoms_(&atoms), small_(1024, -1) {}
  std::int32_t natural(std::uint64_t n) {
    if (n < small_.size()) {
      std::int32_t& atom = small_[static_cast<std::size_t>(n)];
      if (atom < 0) atom = atoms_->intern_integer(static_cast<std::int64_t>(n));
      return atom;
    }
    // The array grows with the number of atoms, because one large number must not make a large array.
    if (n < 16 * static_cast<std::uint64_t>(atoms_->size())) {
      small_.resize(static_cast<std::size_t>(2 * n), -1);
      return natural(n);
    }
    return atoms_->intern_natural(n);
  }
  std::int32_t integer(std::int64_t n) {
    return n >= 0 ? natural(static_cast<std::uint64_t>(n)) : atoms_->intern_integer(n);
  }

 private:
  Atoms* atoms_;
  std::vector<std::int32_t> small_;
};

// Returns the text without its byte order mark, if it has one.
inline std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

// Returns whether the text is UTF-8 (no overlong forms, no surrogates). Invalid text is refused and not repaired,
// because two different invalid strings that look alike would give a wrong verdict.
bool is_utf8(std::string_view text);

}  // namespace isolang
