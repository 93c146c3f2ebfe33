// The Python class of the simulator's options, and the function that generates a history from them.
#include "simulator/workload.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <tuple>

#include "core/required.hpp"
#include "bindings/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

using simulator::Options;

template <typename Enum>
Enum named(const std::string& name, std::initializer_list<const char*> names) {
  int i = 0;
  for (const char* one : names) {
    if (name == one) return static_cast<Enum>(i);
    ++i;
  }
  throw nb::value_error(("unknown name: " + name).c_str());
}

using Transactions = std::vector<std::tuple<int, bool, std::vector<std::tuple<bool, int, int>>>>;

simulator::Plant plant_of(const Transactions& transactions, bool concurrent, bool clock_ahead,
                         double at) {
  simulator::Plant plant{
      .transactions = {}, .concurrent = concurrent, .clock_ahead = clock_ahead, .at = at};
  for (const auto& [session, aborted, ops] : transactions) {
    auto& t = plant.transactions.emplace_back(simulator::PlantedTransaction{session, aborted, {}});
    for (const auto& [write, key, value] : ops) {
      if (session < 0 || key < 0 || value < 0) throw nb::value_error("a plant counts from 0");
      t.ops.push_back({write, key, value});
    }
  }
  if (plant.transactions.empty() || !(at >= 0 && at <= 1))
    throw nb::value_error("an empty plant, or one nowhere");
  return plant;
}

}  // namespace

void register_simulator(nb::module_& m) {
  nb::class_<Options>(m, "WorkloadOptions", "What to simulate; see native/simulator/workload.hpp.")
      .def(nb::init<>())
      .def(
          "set_mechanism",
          [](Options& o, const std::string& reads, bool exclusive, bool stale, bool causal) {
            const auto kind =
                named<simulator::Reads>(reads, {"instant", "snapshot", "moving", "replica"});
            o.mechanism = {kind, exclusive, stale, causal};
          },
          "reads"_a, "exclusive"_a = false, "stale"_a = false, "causal"_a = false)
      .def(
          "set_key_distribution",
          [](Options& o, const std::string& name) {
            o.key_distribution = named<simulator::KeyDistribution>(
                name, {"uniform", "zipfian", "hotspot", "exponential"});
          },
          "name"_a)
      .def(
          "add_plant",
          [](Options& o, const Transactions& transactions, bool concurrent, bool clock_ahead,
             double at) {
            o.plants.push_back(plant_of(transactions, concurrent, clock_ahead, at));
          },
          "transactions"_a, "concurrent"_a, "clock_ahead"_a, "at"_a)
      .def_rw("sessions", &Options::sessions)
      .def_rw("transactions", &Options::transactions)
      .def_rw("operations", &Options::operations)
      .def_rw("read_share", &Options::read_share)
      .def_rw("keys", &Options::keys)
      .def_rw("theta", &Options::theta)
      .def_rw("hot_keys", &Options::hot_keys)
      .def_rw("hot_share", &Options::hot_share)
      .def_rw("values", &Options::values)
      .def_rw("value_theta", &Options::value_theta)
      .def_rw("read_modify_write", &Options::read_modify_write)
      .def_rw("mini", &Options::mini)
      .def_rw("lists", &Options::lists)
      .def_rw("appends", &Options::appends)
      .def_rw("info_rate", &Options::info_rate)
      .def_rw("abort_rate", &Options::abort_rate)
      .def_rw("session_each", &Options::session_each)
      .def_rw("lag", &Options::lag)
      .def_rw("replicas", &Options::replicas)
      .def_rw("seed", &Options::seed);

  m.def(
      "simulate",
      [](const Options& options, double seconds) {
        Budget budget = interruptible_budget(seconds);
        std::optional<simulator::Simulation> result;
        {
          nb::gil_scoped_release released;
          result = simulator::simulate(options, budget);
        }
        simulator::Simulation simulation = required(std::move(result), "the simulated history");
        return nb::make_tuple(nb::cast(std::move(simulation.history)), std::move(simulation.planted));
      },
      "options"_a, "seconds"_a = 0.0);
}

}  // namespace isolang
