// An in-memory multi-version database that runs random transactions of concurrent clients, and the history that the
// clients see.
//
// Time is a counter of events. Each transaction begins, takes effect and is answered at three separate instants, in
// this order, drawn by a random scheduler. The history records the begin and the answer. When a transaction takes
// effect, the versions that the store keeps with their instants decide what it reads. This code knows only mechanisms
// and no levels; isolang/simulator/rules.py explains which mechanism provides which level, and why.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/budget.hpp"
#include "core/history.hpp"

namespace isolang::simulator {

enum class Reads : std::uint8_t {
  instant,   // all reads at the instant at which the transaction takes effect
  snapshot,  // all reads at an earlier instant, the snapshot
  moving,    // each read at a separate instant, in program order
  replica,   // reads from the client's replica, which receives other replicas' transactions later
};

struct Mechanism {
  Reads reads = Reads::instant;
  // for snapshot: no snapshot is older than the newest version of a key that the transaction writes
  bool exclusive = false;
  bool stale =
      false;  // snapshots, and instants of read-only transactions, may lie before the begin
  bool causal = false;  // for replica: a transaction arrives after all that were at its own replica when it took effect
};

enum class KeyDistribution : std::uint8_t { uniform, zipfian, hotspot, exponential };

// A transaction of a planted anomaly. Its keys and sessions are counted from 0 within the plant; value 0 is the initial
// state.
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
      // true: all transactions begin before any takes effect; false: each begins after the previous one has ended
      true;
  bool clock_ahead =
      false;        // the clock of the first transaction's session is ahead, up to after the end of the last one
  double at = 0.5;  // the share of all transactions that begin before the plant
};

struct Options {
  Mechanism mechanism;
  std::int32_t sessions = 10;
  std::int64_t transactions = 100;
  std::int32_t operations = 8;
  double read_share = 0.5;
  std::int64_t keys = 100;
  KeyDistribution key_distribution = KeyDistribution::uniform;
  double theta = 0.99;      // the exponent of the Zipf distribution of keys
  double hot_keys = 0.2;    // for hotspot keys: this share of the keys …
  double hot_share = 0.8;   // … gets this share of the operations
  std::int64_t values = 0;  // the number of values of each key; 0: each write of a key writes a unique number, from 1
  double value_theta = 0;   // if values > 0: written values are drawn from a Zipf distribution over 1 … `values`
  double read_modify_write =
      0;               // the share of writes before which the same transaction reads the key
  bool mini = false;   // one or two keys, each of which is read and then perhaps written
  bool lists = false;  // appends and list reads in place of writes and reads
  std::int32_t appends = 32;  // for lists: after this many appends, a fresh key replaces a key
  // the share of transactions whose outcome the client does not learn; half of them take effect
  double info_rate = 0;
  double abort_rate = 0;
  bool session_each = false;  // every transaction is in a separate session
  std::int64_t lag =
      0;  // the number of events by which a snapshot or a replica may lag behind; 0: 8 for each session
  std::int32_t replicas = 3;
  std::vector<Plant> plants;
  std::uint64_t seed = 0;
};

struct Simulation {
  History history;
  std::vector<std::vector<std::int32_t>> planted;  // for each plant, its transactions
};

// Throws std::invalid_argument if the options do not fit together.
Simulation simulate(const Options& options, Budget& budget);

}  // namespace isolang::simulator
