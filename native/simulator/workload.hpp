// An in-memory multi-version database that runs random transactions of concurrent clients, and the
// history they see.
//
// Time is a counter of events: each transaction begins, takes effect and is answered at three
// instants of its own, in this order, drawn by a random scheduler; begin and answer are the
// recorded times. What a transaction reads is decided when it takes effect, from the versions that
// the store keeps with their instants. This code knows no level, only mechanisms;
// isolang/simulator/rules.py says which of them gives which level, and why.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/budget.hpp"
#include "core/history.hpp"

namespace isolang::simulator {

enum class Reads : std::uint8_t {
  instant,   // all at the instant at which the transaction takes effect
  snapshot,  // all at an earlier instant, its snapshot
  moving,    // each read at an instant of its own, in program order
  replica,   // from the client's replica, which learns of other replicas' transactions later
};

struct Mechanism {
  Reads reads = Reads::instant;
  bool exclusive = false;  // snapshot: none is older than the newest version of a key that the
                           // transaction writes
  bool stale =
      false;  // snapshots, and instants of read-only transactions, may lie before the begin
  bool causal = false;  // replica: a transaction arrives after all that were at its own replica
                        // when it took effect
};

enum class KeyDistribution : std::uint8_t { uniform, zipfian, hotspot, exponential };

// A transaction of a planted anomaly. Keys and sessions count from 0 inside the plant; value 0 is
// the initial state.
struct PlantedOp {
  bool write;
  std::int32_t key;
  std::int32_t value;
};
struct PlantedTransaction {
  std::int32_t session;
  bool aborted;
  std::vector<PlantedOp> ops;
};
struct Plant {
  std::vector<PlantedTransaction> transactions;
  bool concurrent =
      true;  // all begin before one takes effect; else each begins after the one before has ended
  bool clock_ahead =
      false;        // the clock of the first one's session is ahead, until after the last one's end
  double at = 0.5;  // the share of the transactions that begin before
};

struct Options {
  Mechanism mechanism;
  std::int32_t sessions = 10;
  std::int64_t transactions = 100;
  std::int32_t operations = 8;
  double read_share = 0.5;
  std::int64_t keys = 100;
  KeyDistribution key_distribution = KeyDistribution::uniform;
  double theta = 0.99;      // zipfian
  double hot_keys = 0.2;    // hotspot: this share of the keys …
  double hot_share = 0.8;   // … gets this share of the operations
  std::int64_t values = 0;  // 0: each write of a key has a number of its own, from 1
  double value_theta = 0;   // else: 1 … values, zipfian
  double read_modify_write =
      0;               // the share of writes that a read of the key precedes in the transaction
  bool mini = false;   // one or two keys, each read and then perhaps written
  bool lists = false;  // appends and list reads
  std::int32_t appends = 32;  // lists: after this many a key gives way to a fresh one
  double info_rate = 0;       // outcome unknown to the client; half of them take effect
  double abort_rate = 0;
  bool session_each = false;  // every transaction is a session of its own
  std::int64_t lag =
      0;  // events by which a snapshot or a replica may lag behind; 0: 8 for each session
  std::int32_t replicas = 3;
  std::vector<Plant> plants;
  std::uint64_t seed = 0;
};

struct Simulation {
  History history;
  std::vector<std::vector<std::int32_t>> planted;  // for each plant, its transactions
};

// Throws std::invalid_argument when the options do not go together.
Simulation simulate(const Options& options, Budget& budget);

}  // namespace isolang::simulator
