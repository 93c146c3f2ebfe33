// `in_parts` hands out the parts of a task to threads in order. The calling thread takes part in
// the work. `first_to_answer` runs alternative procedures in parallel, and the first one in order
// that has an answer wins. The calling thread only waits and notices interrupts. An exception in
// one thread stops the others and is rethrown by the calling thread.
#include "core/parallel.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace isolang {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};

// Starts `count` threads, or as many as the system allows, and joins them at the end.
class Threads {
 public:
  template <typename Run>
  Threads(std::size_t count, Run run) {
    try {
      for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([run, i] { run(i); });
    } catch (const std::system_error&) {
    }
  }
  ~Threads() {
    for (std::thread& t : threads_) t.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  std::size_t count() const { return threads_.size(); }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace

std::size_t in_parts(std::size_t parts, std::size_t threads, Budget& budget,
                     const std::function<bool(std::size_t, std::size_t, Budget&)>& work) {
  std::atomic<std::size_t> next{0}, end{parts};
  std::atomic<bool> stop{false};
  std::exception_ptr thrown;
  std::mutex throwing;
  const auto run = [&](std::size_t worker, Budget& own) {
    try {
      // Parts are taken in order, so all parts before a failed part are done or in progress.
      for (std::size_t part = next++; part < end; part = next++) {
        if (work(worker, part, own)) continue;
        std::size_t first = end;
        // mutant: failed-part-ignored
        while (part < first && !end.compare_exchange_weak(first, part)) {
        }
      }
    } catch (...) {
      const std::lock_guard lock(throwing);
      if (!thrown) thrown = std::current_exception();
      stop = true;
      end = 0;
    }
  };
  const std::size_t workers = std::max<std::size_t>(1, std::min(threads, parts));
  std::vector<Budget> budgets(workers - 1, budget.part(stop));
  {
    const Threads others(workers - 1, [&](std::size_t i) { run(i + 1, budgets[i]); });
    run(0, budget);
  }
  // mutant: exception-forgotten
  if (thrown) std::rethrow_exception(thrown);
  return end;
}

std::size_t first_to_answer(std::span<const std::function<bool()>> ways,
                            std::span<std::atomic<bool>> stop, std::size_t threads,
                            Budget& budget) {
  for (auto& flag : stop) flag = false;
  std::size_t next = 0, first = ways.size();
  std::exception_ptr thrown;
  std::mutex state;
  std::condition_variable ended;
  const auto fail = [&](std::exception_ptr what) {
    if (!thrown) thrown = std::move(what);
    for (auto& flag : stop) flag = true;
  };
  const auto run = [&] {
    std::unique_lock lock(state);
    while (next < first && !thrown) {
      const std::size_t way = next++;
      lock.unlock();
      bool answers = false;
      std::exception_ptr failure;
      try {
        answers = ways[way]();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      // mutant: stopped-way-fails, failed-way-ignored
      if (failure && !stop[way]) fail(failure);  // failures of stopped procedures are ignored
      if (!answers || way >= first) continue;
      first = way;
      for (std::size_t later = way + 1; later < ways.size(); ++later) stop[later] = true;
    }
  };
  const std::size_t wanted = std::min(threads, ways.size());
  std::size_t done = 0;
  std::unique_lock lock(state);
  const Threads others(wanted < 2 ? 0 : wanted, [&](std::size_t) {
    run();
    const std::lock_guard counting(state);
    ++done;
    ended.notify_one();
  });
  // This thread only waits, because it must notice an interrupt whatever the other threads do.
  while (done < others.count()) {
    ended.wait_for(lock, kPollInterval);
    lock.unlock();
    std::exception_ptr interrupt;
    try {
      budget.check();
    } catch (...) {
      interrupt = std::current_exception();
    }
    lock.lock();
    if (interrupt) fail(interrupt);
  }
  lock.unlock();
  if (others.count() == 0) run();
  if (thrown) std::rethrow_exception(thrown);
  return first;
}

}  // namespace isolang
