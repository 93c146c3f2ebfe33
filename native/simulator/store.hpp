// The database: every version of every key with the instant at which it was installed, and replicas that know some of
// the versions.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/index.hpp"
#include "simulator/random.hpp"
#include "simulator/workload.hpp"

namespace isolang::simulator {

inline constexpr std::int32_t kInitialVersion = -1;

class Store {
 public:
  void grow(std::int32_t keys) { newest_.resize(idx(keys), kInitialVersion); }
  // Versions are numbered in the order of their instants.
  std::int32_t install(std::int32_t key, std::int32_t atom, std::int64_t instant) {
    auto& head = newest_[key];
    versions_.push_back({instant, atom, head, key});
    return head = static_cast<std::int32_t>(versions_.size()) - 1;
  }
  std::int32_t newest(std::int32_t key) const { return newest_[key]; }
  // Returns the newest version of the key at an instant, or the initial version.
  std::int32_t at(std::int32_t key, std::int64_t instant) const {
    std::int32_t v = newest(key);
    while (v >= 0 && this->instant(v) > instant) v = version(v).before;
    return v;
  }
  std::int64_t instant(std::int32_t v) const { return v < 0 ? 0 : version(v).instant; }
  std::int32_t atom(std::int32_t v) const { return v < 0 ? kNil : version(v).atom; }
  std::int32_t before(std::int32_t v) const { return version(v).before; }
  std::int32_t key(std::int32_t v) const { return version(v).key; }
  std::int32_t size() const { return static_cast<std::int32_t>(versions_.size()); }
  void reserve(std::size_t versions) { versions_.reserve(versions); }

 private:
  struct Version {
    std::int64_t instant;
    std::int32_t atom, before, key;
  };
  const Version& version(std::int32_t v) const { return versions_[v]; }
  std::vector<std::int32_t> newest_;
  std::vector<Version> versions_;
};

// Replicas that each know a set of whole transactions and show the newest version of each key among them. A transaction
// is known at its own replica immediately, and at other replicas later. It arrives in any order or, if delivery is
// causal, only after all transactions that its own replica knew when it took effect.
class Replicas {
 public:
  Replicas(const Store& store, std::int32_t replicas, bool causal, std::int64_t lag)
      : store_(store),
        n_(idx(replicas)),
        causal_(causal),
        lag_(lag),
        shown_(n_),
        log_(n_),
        known_(n_ * n_, 0),
        waiting_(n_) {}
  std::int32_t read(std::size_t replica, std::int32_t key) const {
    const auto& shown = shown_[replica];
    return idx(key) < shown.size() ? shown[key] : kInitialVersion;
  }
  // Commits, at this replica, the transaction that installed the versions from `first` on.
  void commit(std::size_t replica, std::int32_t first);
  // Delivers every transaction not yet known to all replicas.
  void settle();
  // May deliver a transaction to a random replica.
  void step(std::int64_t now, Random& random);
  std::size_t count() const { return n_; }

 private:
  struct Delivery {
    std::int32_t first, last;  // its versions are first … last-1
  };
  void learn(std::size_t replica, std::int32_t transaction);
  bool prepared(std::size_t replica, std::int32_t transaction) const;
  bool due(std::int32_t transaction, std::int64_t now, Random& random) const;

  const Store& store_;
  std::size_t n_;
  bool causal_;
  std::int64_t lag_;
  std::vector<std::vector<std::int32_t>> shown_;  // by replica, then by key: the version shown
  std::vector<Delivery> transactions_;
  std::vector<std::int32_t>
      needs_;  // if causal: for each transaction, n_ counts of how much of each replica's log must be known first
  std::vector<std::vector<std::int32_t>> log_;  // if causal: the transactions of each replica, in order
  std::vector<std::int32_t> known_;  // if causal: [replica][origin] how much of the origin's log the replica knows
  std::vector<std::vector<std::int32_t>>
      waiting_;  // if not causal: for each replica, the transactions not yet known to it
};

}  // namespace isolang::simulator
