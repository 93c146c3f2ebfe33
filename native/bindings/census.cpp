// The Python function for the figures of `isocheck stats` (core/census.hpp).
#include <utility>

#include "bindings/bindings.hpp"
#include "core/census.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

nb::dict counted(const History& history) {
  Census c;
  {
    nb::gil_scoped_release released;
    history.validate();
    c = census(history);
  }
  nb::dict out;
  const std::pair<const char*, std::int64_t> counts[] = {
      {"sessions", c.sessions},
      {"operations", c.operations},
      {"reads", c.reads},
      {"list_reads", c.list_reads},
      {"set_reads", c.set_reads},
      {"writes", c.writes},
      {"appends", c.appends},
      {"failed_operations", c.failed_operations},
      {"unknown_reads", c.unknown_reads},
      {"initial_reads", c.initial_reads},
      {"explicit_sources", c.explicit_sources},
      {"missing_sources", c.missing_sources},
      {"repeated_values", c.repeated_values},
      {"repeated_writes", c.repeated_writes},
      {"working", c.working},
      {"read_modify_write", c.read_modify_write},
      {"read_only", c.read_only},
      {"write_only", c.write_only},
  };
  for (const auto& [name, count] : counts) out[name] = count;
  for (const auto& [name, of] : {std::pair("operations_per_transaction", c.operations_per_transaction),
                                 std::pair("keys_per_transaction", c.keys_per_transaction)})
    out[name] = nb::make_tuple(of.min, of.median, of.max);
  return out;
}

}  // namespace

void register_census(nb::module_& m) { m.def("census", &counted, "columns"_a); }

}  // namespace isolang
