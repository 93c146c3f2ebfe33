#include "readers/cursor.hpp"

namespace isolang {

bool Cursor::simple_value(int depth) {
  if (take('"')) {
    while (p_ < end_ && *p_ != '"' && *p_ != '\\' && *p_ >= ' ' && *p_ <= '~') ++p_;
    return take('"');
  }
  if (peek() == '[' || peek() == '{') {
    const char close = *p_ == '[' ? ']' : '}';
    mark(*p_);
    if (depth == 0) return false;
    for (bool first = true; !take(close); first = false) {
      if (!first && !mark(',')) return false;
      if (close == '}' && (peek() != '"' || !simple_value(0) || !mark(':'))) return false;
      if (!simple_value(depth - 1)) return false;
      blanks_and_lines();
    }
    return true;
  }
  std::uint64_t natural_number = 0;
  std::int64_t negative_number = 0;
  return take("true") || take("false") || take("null") || natural(natural_number) || negative(negative_number);
}

}  // namespace isolang
