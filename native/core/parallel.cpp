#include "core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace isolang {

std::size_t in_parts(std::size_t parts, std::size_t threads, Budget& budget,
                     const std::function<bool(std::size_t, std::size_t, Budget&)>& work) {
  std::atomic<std::size_t> next{0}, end{parts};
  std::atomic<bool> stop{false};
  std::exception_ptr thrown;
  std::mutex throwing;
  const auto run = [&](std::size_t worker, Budget& own) {
    try {
      // Parts are taken in order, so that those before one that has failed are done or being done.
      for (std::size_t part = next++; part < end; part = next++) {
        if (work(worker, part, own)) continue;
        std::size_t first = end;
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
  std::vector<std::thread> others;
  try {
    for (std::size_t worker = 1; worker < std::min(threads, parts); ++worker)
      others.emplace_back([&, worker] {
        Budget own = budget.of_thread(stop);
        run(worker, own);
      });
  } catch (const std::system_error&) {  // no more threads
  }
  run(0, budget);
  for (std::thread& t : others) t.join();
  if (thrown) std::rethrow_exception(thrown);
  return end;
}

}  // namespace isolang
