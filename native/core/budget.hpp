// A `Budget` holds the deadline of some work and notices interrupts such as Ctrl-C. Every long loop polls it, and an
// exception ends the loop when the budget is used up.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "core/faults.hpp"

namespace isolang {

// Thrown when the time is up, with the name of the current phase. The Python layer turns it into
// Unknown.
struct OutOfTime : std::runtime_error {
  explicit OutOfTime(const std::string& phase)
      : std::runtime_error(phase.empty() ? "timeout" : "timeout while " + phase) {}
};

// Thrown when a search reaches its own memory limit, before the process reaches a system limit.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns an address that no other thread has while this one runs: <thread> and its id take every file that includes
// this one longer to compile.
inline const void* this_thread() {
  static thread_local const char here = 0;
  return &here;
}

class Budget {
 public:
  // A budget with `seconds` <= 0 has no deadline. The budget calls `interrupted` about every 50 ms,
  // on the thread that created the budget. The callback may throw (Ctrl-C) and may read `phase`.
  explicit Budget(double seconds = 0, std::function<void(const Budget&)> interrupted = {})
      : interrupted_(std::move(interrupted)), start_(Clock::now()), next_(start_) {
    if (seconds > 0)
      deadline_ = start_ + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(seconds));
  }
  // Returns a budget for a part of the work, which may run on another thread. That budget also runs
  // out when `stop` is set.
  Budget part(const std::atomic<bool>& stop) const {
    Budget own = *this;
    own.stop_ = &stop;
    return own;
  }
  // Also ends the budget after `polls` polls. Equal runs poll equally often, whatever the load on
  // the machine. Use it only for single-threaded runs; 0 sets no limit.
  void limit_work(std::int64_t polls) {
    if (polls > 0) most_calls_ = static_cast<std::uint64_t>(polls);
  }
  std::int64_t work() const { return static_cast<std::int64_t>(calls_); }
  // The current phase of the work, as named in progress reports and in the reason for a timeout.
  const char* phase = "";
  // Inner loops can afford this call, because it reads the clock only once in 1,024 calls.
  void poll() {
    if ((++calls_ & looked_past_) == 0) check();
  }
  // Counts work that took about as long as `polls` polls.
  void spend(std::size_t polls) {
    const std::uint64_t before = calls_;
    calls_ += polls;
    if ((calls_ & ~looked_past_) != (before & ~looked_past_)) check();
  }
  void check() {
    const auto now = Clock::now();
    if (calls_ > most_calls_ || now > deadline_ || faults::past_deadline() || (stop_ != nullptr && *stop_))
      throw OutOfTime(phase);
    if (interrupted_ && now >= next_ && this_thread() == home_) {
      next_ = now + std::chrono::milliseconds(50);
      interrupted_(*this);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::function<void(const Budget&)> interrupted_;
  const void* home_ = this_thread();
  Clock::time_point start_, next_;
  Clock::time_point deadline_ = Clock::time_point::max();
  const std::atomic<bool>* stop_ = nullptr;
  std::uint64_t calls_ = 0, most_calls_ = ~std::uint64_t{0};
  std::uint64_t looked_past_ =
      faults::armed ? 0 : 1023;  // the number of polls, minus 1, from one reading of the clock to the next
};

}  // namespace isolang
