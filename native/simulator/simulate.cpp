// The scheduler of the simulation. It chooses a random client for each event: a transaction begins, takes effect, or is
// answered. When a transaction takes effect, the store decides what it reads.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "core/index.hpp"
#include "simulator/programs.hpp"
#include "simulator/store.hpp"
#include "simulator/workload.hpp"

namespace isolang::simulator {
namespace {

struct Client {
  enum class State : std::uint8_t { idle, running, answered };
  State state = State::idle;
  bool restart = false;       // its session ends with the current transaction
  bool applied = true;        // whether the current transaction takes effect
  std::int32_t session = -1;  // -1 before the first transaction
  std::int32_t transaction = -1;
  std::int64_t since = 0;  // the instant at which the last transaction of the session took effect
};

void check(const Options& o) {
  const auto bad = [](const char* what) { throw std::invalid_argument(what); };
  if (o.sessions < 1 || o.transactions < 0 || o.operations < 1 || o.keys < 1 || o.values < 0 ||
      o.lag < 0)
    bad("sessions, operations and keys are at least 1, transactions, values and lag at least 0");
  if (o.replicas < 1 || o.appends < 1) bad("replicas and appends are at least 1");
  if (o.keys > 1'000'000'000 || o.values > 1'000'000'000 || o.transactions > 200'000'000 ||
      o.transactions * o.operations > 2'000'000'000)
    bad("more than the columns can hold");
  for (const double share :
       {o.read_share, o.read_modify_write, o.info_rate, o.abort_rate, o.hot_keys, o.hot_share})
    if (!(share >= 0 && share <= 1)) bad("shares and rates are between 0 and 1");
  if (!(o.theta >= 0 && o.value_theta >= 0)) bad("theta is at least 0");
  if (o.info_rate + o.abort_rate > 1)
    bad("the rates of aborts and of unknown outcomes add up to more than 1");
  if (o.mini && o.read_share < 0.5)
    bad("mini-transactions read before each write: reads are at least half");
  if (!o.mini && (1 - o.read_share) * (1 + o.read_modify_write) > 1 + 1e-9)
    bad("fewer reads than read-modify-write adds (the share of reads is at least m / (1 + m))");
  if (o.lists && o.mechanism.reads == Reads::replica)
    bad("lists have one order of versions, replicas have not");
  for (const Plant& plant : o.plants) {
    std::int32_t sessions = 0;
    for (const auto& t : plant.transactions) sessions = std::max(sessions, t.session + 1);
    if (sessions > o.sessions) bad("fewer sessions than a planted anomaly needs");
    if (o.session_each && idx(sessions) < plant.transactions.size())
      bad("a planted anomaly has two transactions in a session, but each is to have its own");
  }
}

class Simulator {
 public:
  Simulator(const Options& options, Budget& budget)
      : options_(options),
        budget_(budget),
        random_(options.seed),
        programs_(options, random_),
        lag_(options.lag > 0 ? options.lag : 8 * std::int64_t{options.sessions}),
        replicas_(store_, options.replicas, options.mechanism.causal, lag_),
        clients_(idx(options.sessions)) {
    const auto txns = idx(options.transactions),
               ops = txns * idx(options.mini ? 4 : options.operations);
    reserve(txns, ops);
    store_.reserve(
        static_cast<std::size_t>(static_cast<double>(ops) * (1 - options.read_share) * 1.02) + 64);
    for (std::int32_t key = 0; key < programs_.keys(); ++key) new_key(key);
  }

  Simulation run();

 private:
  void reserve(std::size_t txns, std::size_t ops);
  void new_key(std::int32_t number);
  std::int32_t value_atom(std::int32_t number);
  void step(Client& client);
  void begin(Client& client);
  void begin(Client& client, Status status);
  void take_effect(Client& client);
  void answer(Client& client);
  void finish(Client& client);
  std::int64_t snapshot_of(const Client& client, std::int64_t first, std::int64_t last);
  void read(std::int64_t op, std::int64_t txn_first, std::int32_t version, bool known);
  void plant(const Plant& plant);
  void plant_operations(const PlantedTransaction& planted, std::int32_t first_key);

  const Options& options_;
  Budget& budget_;
  Random random_;
  Programs programs_;
  Store store_;
  std::int64_t lag_;
  Replicas replicas_;
  std::vector<Client> clients_;
  History history_;
  std::vector<std::int32_t> atom_of_;  // atom of each number, or -1
  std::vector<std::vector<std::int32_t>> planted_;
  std::vector<std::pair<std::int32_t, std::int64_t>>
      clocks_;  // (session, how much its clock is ahead)
  std::vector<std::int32_t> list_;
  std::int64_t now_ = 0, started_ = 0;
};

void Simulator::reserve(std::size_t txns, std::size_t ops) {
  History& h = history_;
  h.txn_session.reserve(txns);
  h.txn_status.reserve(txns);
  h.txn_number.reserve(txns);
  h.op_start.reserve(txns + 1);
  h.reserve_operations(ops);
}

void Simulator::new_key(std::int32_t number) {
  while (history_.n_keys() <= number)
    history_.key_of(history_.key_atoms.intern_integer(history_.n_keys()));
  store_.grow(number + 1);
}

std::int32_t Simulator::value_atom(std::int32_t number) {
  if (idx(number) >= atom_of_.size()) atom_of_.resize(idx(number) + 1 + idx(number) / 2, -1);
  auto& atom = atom_of_[number];
  if (atom < 0) atom = history_.values.intern_integer(number);
  return atom;
}

Simulation Simulator::run() {
  budget_.phase = "simulating";
  std::vector<const Plant*> plants;
  for (const Plant& plant : options_.plants) plants.push_back(&plant);
  std::ranges::stable_sort(plants, {}, &Plant::at);
  planted_.resize(plants.size());
  std::vector<std::int32_t> busy(clients_.size());  // the clients that still have something to do
  std::iota(busy.begin(), busy.end(), 0);
  std::size_t next_plant = 0;
  while (true) {
    while (next_plant < plants.size() &&
           static_cast<double>(started_) >=
               plants[next_plant]->at * static_cast<double>(options_.transactions))
      plant(*plants[next_plant++]);
    if (busy.empty()) break;
    budget_.poll();
    const auto i = idx(random_.below(busy.size()));
    Client& client = clients_[busy[i]];
    if (client.state == Client::State::idle && started_ == options_.transactions) {
      busy[i] = busy.back();
      busy.pop_back();
      continue;
    }
    step(client);
    if (options_.mechanism.reads == Reads::replica) replicas_.step(now_, random_);
  }
  for (const auto& [session, ahead] : clocks_)
    for (std::size_t t = 0; t < history_.txn_session.size(); ++t)
      if (history_.txn_session[t] == session) {
        history_.txn_begin.set(t, history_.txn_begin[t] + ahead);
        if (history_.txn_end[t] != kTimeUnknownEnd) history_.txn_end.set(t, history_.txn_end[t] + ahead);
      }
  history_.has_time = true;
  history_.validate();
  return {std::move(history_), std::move(planted_)};
}

void Simulator::step(Client& client) {
  switch (client.state) {
    case Client::State::idle:
      return begin(client);
    case Client::State::running:
      return take_effect(client);
    case Client::State::answered:
      return answer(client);
  }
}

void Simulator::finish(Client& client) {
  while (client.state != Client::State::idle) step(client);
}

void Simulator::begin(Client& client) {
  const double fate = random_.unit();
  const bool indeterminate = fate < options_.info_rate;
  const bool aborted = !indeterminate && fate < options_.info_rate + options_.abort_rate;
  begin(client, indeterminate ? Status::indeterminate : aborted ? Status::aborted : Status::committed);
  client.applied = indeterminate ? random_.chance(0.5) : !aborted;
  ++started_;
  const auto& program = programs_.next();
  new_key(programs_.keys() - 1);
  const OpKind reads = options_.lists ? OpKind::read_list : OpKind::read;
  const OpKind writes = options_.lists ? OpKind::append : OpKind::write;
  std::int64_t position = 0;
  for (const Intent& intent : program)
    history_.add_op(intent.write ? writes : reads, intent.key,
                    intent.write ? value_atom(intent.value) : kUnknownValue, ++position);
}

void Simulator::begin(Client& client, Status status) {
  if (client.session < 0 || client.restart || options_.session_each) {
    client.session = history_.sessions;
    client.since = 0;
  }
  client.restart =
      status == Status::indeterminate;  // a client that does not know the outcome continues in a new session
  const std::int64_t ordinal = history_.transactions() + 1;
  client.transaction =
      history_.begin_transaction(client.session, status, ordinal, ordinal, 0, ++now_);
  client.state = Client::State::running;
}

// Returns an instant at which a transaction that runs from `first` to `last` may read. This is never before the last
// transaction of its session took effect.
std::int64_t Simulator::snapshot_of(const Client& client, std::int64_t first, std::int64_t last) {
  if (!options_.mechanism.stale) return last;
  const std::int64_t earliest = std::max({client.since, first - lag_, std::int64_t{0}});
  return earliest +
         static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(last - earliest + 1)));
}

void Simulator::take_effect(Client& client) {
  const std::int64_t began = history_.txn_begin[client.transaction];
  const std::int64_t instant = ++now_;
  const auto status = static_cast<Status>(history_.txn_status[client.transaction]);
  const std::int64_t first = history_.op_start[client.transaction];
  const std::int64_t last = history_.op_start[idx(client.transaction) + 1];
  const auto is_write = [&](std::int64_t op) {
    return history_.op_kind[op] == static_cast<std::uint8_t>(OpKind::write) ||
           history_.op_kind[op] == static_cast<std::uint8_t>(OpKind::append);
  };
  bool writes = false;
  std::int64_t sees = instant, newest_written = 0;
  for (std::int64_t op = first; op < last; ++op)
    if (is_write(op)) {
      writes = true;
      newest_written = std::max(newest_written, store_.instant(store_.newest(history_.op_key[op])));
    }
  const auto& how = options_.mechanism;
  const auto replica = idx(&client - clients_.data()) % replicas_.count();
  if (how.reads == Reads::instant && !writes) sees = snapshot_of(client, began, instant);
  if (how.reads == Reads::snapshot) {
    sees = snapshot_of(client, began, began);
    if (how.exclusive) sees = std::max(sees, newest_written);
  }
  std::int64_t moving = began;
  for (std::int64_t op = first; op < last; ++op) {
    if (is_write(op)) continue;
    const std::int32_t key = history_.op_key[op];
    if (how.reads == Reads::moving) {
      moving +=
          static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(instant - moving)));
      sees = moving;
    }
    read(op, first,
         how.reads == Reads::replica ? replicas_.read(replica, key) : store_.at(key, sees),
         status != Status::indeterminate);
  }
  if (client.applied) {
    const std::int32_t installed = store_.size();
    for (std::int64_t op = first; op < last; ++op) {
      if (!is_write(op)) continue;
      bool overwritten = false;  // only the last write of a register is a version
      for (std::int64_t later = op + 1; later < last && !options_.lists; ++later)
        overwritten |= is_write(later) && history_.op_key[later] == history_.op_key[op];
      if (!overwritten) store_.install(history_.op_key[op], history_.op_value[op], instant);
    }
    if (how.reads == Reads::replica) replicas_.commit(replica, installed);
    // Nothing was written at the instant of a read-only transaction, so its session may continue from the instant at
    // which it read.
    if (status == Status::committed)
      client.since = writes || how.reads != Reads::instant ? instant : sees;
  }
  client.state = Client::State::answered;
}

// Sets the result of a read: the value of the last own write before it or, if there is none, that of `version`. A list
// has the elements of `version`, followed by the own appends.
void Simulator::read(std::int64_t op, std::int64_t txn_first, std::int32_t version, bool known) {
  auto& value = history_.op_value[op];
  if (!known) {
    value = kUnknownValue;
    return;
  }
  const std::int32_t key = history_.op_key[op];
  if (history_.op_kind[op] == static_cast<std::uint8_t>(OpKind::read)) {
    value = store_.atom(version);
    for (std::int64_t own = txn_first; own < op; ++own)
      if (history_.op_kind[own] == static_cast<std::uint8_t>(OpKind::write) &&
          history_.op_key[own] == key)
        value = history_.op_value[own];
    return;
  }
  list_.clear();
  for (; version >= 0; version = store_.before(version)) list_.push_back(store_.atom(version));
  std::ranges::reverse(list_);
  for (std::int64_t own = txn_first; own < op; ++own)
    if (history_.op_kind[own] == static_cast<std::uint8_t>(OpKind::append) &&
        history_.op_key[own] == key)
      list_.push_back(history_.op_value[own]);
  value = history_.add_list(list_);
}

void Simulator::answer(Client& client) {
  ++now_;
  if (!client.restart) history_.txn_end.set(idx(client.transaction), now_);
  client.state = Client::State::idle;
}

// Plays a planted anomaly. Its clients first finish their transactions. No other client acts meanwhile, so the planted
// transactions are concurrent with all transactions that are running, and with none that begins later.
void Simulator::plant(const Plant& plant) {
  std::int32_t sessions = 0;
  for (const auto& t : plant.transactions) sessions = std::max(sessions, t.session + 1);
  std::vector<std::int32_t> drawn(clients_.size());
  std::iota(drawn.begin(), drawn.end(), 0);
  for (std::size_t i = 0; i < idx(sessions); ++i) {
    std::swap(drawn[i], drawn[i + idx(random_.below(drawn.size() - i))]);
    finish(clients_[drawn[i]]);
  }
  // A planted transaction that reads from another one must know what the other one's replica knew, so all replicas
  // learn everything.
  replicas_.settle();
  const std::int32_t first_key = programs_.fresh_key();
  for (const auto& t : plant.transactions)
    for (const PlantedOp& op : t.ops)
      while (first_key + op.key >= programs_.keys()) programs_.fresh_key();
  new_key(programs_.keys() - 1);
  std::vector<std::int32_t> txns;
  const auto end = [&](std::size_t i) {
    ++now_;
    history_.txn_end.set(idx(txns[i]), now_);
    Client& client = clients_[drawn[plant.transactions[i].session]];
    client.since = now_;
    client.state = Client::State::idle;
  };
  for (std::size_t i = 0; i < plant.transactions.size(); ++i) {
    const PlantedTransaction& t = plant.transactions[i];
    Client& client = clients_[drawn[t.session]];
    begin(client, t.aborted ? Status::aborted : Status::committed);
    txns.push_back(client.transaction);
    plant_operations(t, first_key);
    if (!plant.concurrent) end(i);
  }
  for (std::size_t i = 0; plant.concurrent && i < txns.size(); ++i) end(i);
  if (plant.clock_ahead)
    clocks_.emplace_back(history_.txn_session[txns.front()],
                         history_.txn_end[txns.back()] - history_.txn_begin[txns.front()] + 1);
  for (std::size_t i = 0; i < options_.plants.size(); ++i)
    if (&options_.plants[i] == &plant) planted_[i] = std::move(txns);
}

void Simulator::plant_operations(const PlantedTransaction& planted, std::int32_t first_key) {
  std::int64_t position = 0;
  for (const PlantedOp& op : planted.ops) {
    const std::int32_t key = first_key + op.key;
    const std::int32_t atom = op.value == 0 ? kNil : value_atom(op.value);
    if (op.write) {
      history_.add_op(options_.lists ? OpKind::append : OpKind::write, key, atom, ++position);
    } else if (options_.lists) {
      history_.add_op(
          OpKind::read_list, key,
          history_.add_list(op.value == 0 ? std::vector<std::int32_t>{} : std::vector{atom}),
          ++position);
    } else {
      history_.add_op(OpKind::read, key, atom, ++position);
    }
  }
}

}  // namespace

Simulation simulate(const Options& options, Budget& budget) {
  check(options);
  return Simulator(options, budget).run();
}

}  // namespace isolang::simulator
