// A stress test of an embedded engine: threads run random transactions and log what they saw.
// rustc -O gate.rs && ./gate history.edn && isocheck --spec si history.edn
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex};

/// The engine under test; put yours here. It keeps (commit, value) of each version of a key.
#[derive(Default)]
struct Engine { versions: HashMap<u64, Vec<(u64, u64)>>, last: u64 }

struct Transaction { snapshot: u64, writes: HashMap<u64, u64> }

impl Engine {
    fn begin(&self) -> Transaction { Transaction { snapshot: self.last, writes: HashMap::new() } }
    fn read(&self, t: &Transaction, key: u64) -> Option<u64> {
        if let Some(own) = t.writes.get(&key) { return Some(*own); }
        let all = self.versions.get(&key)?;
        all.iter().rev().find(|(commit, _)| *commit <= t.snapshot).map(|(_, value)| *value)
    }
    fn commit(&mut self, t: Transaction, checks: bool) -> bool {
        let newest = |key| self.versions.get(key).and_then(|all| all.last()).map_or(0, |v| v.0);
        if checks && t.writes.keys().any(|key| newest(key) > t.snapshot) { return false; }
        self.last += 1;
        for (key, value) in t.writes { self.versions.entry(key).or_default().push((self.last, value)); }
        true
    }
}

/// One line of the log for each event: an `:invoke` before the first call, and `:ok`, `:fail` or
/// `:info` (not known) after the last one. The lock gives the events their order.
fn log(file: &Mutex<File>, kind: &str, process: u64, operations: &str) {
    writeln!(file.lock().unwrap(), "{{:type :{kind}, :f :txn, :process {process}, :value [{operations}]}}").unwrap();
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: gate FILE [--bug]");
    let checks = std::env::args().nth(2).as_deref() != Some("--bug");
    let engine = Arc::new(Mutex::new(Engine::default()));
    let file = Arc::new(Mutex::new(File::create(path).unwrap()));
    let threads: Vec<_> = (0..8u64).map(|process| {
        let (engine, file) = (engine.clone(), file.clone());
        std::thread::spawn(move || {
            let mut random = process + 1; // xorshift, so that no crate is needed
            let mut below = move |n: u64| { random ^= random << 13; random ^= random >> 7; random ^= random << 17; random % n };
            for number in 0..500 {
                let plan: Vec<(bool, u64, u64)> = (0..4).map(|i| (below(2) == 0, below(10), (process * 500 + number) * 4 + i + 1)).collect();
                let (mut asked, mut seen) = (String::new(), String::new());
                for (write, key, value) in &plan {
                    if *write { write!(asked, "[:w {key} {value}] ").unwrap() } else { write!(asked, "[:r {key} nil] ").unwrap() }
                }
                log(&file, "invoke", process, &asked);
                let mut t = engine.lock().unwrap().begin();
                for (write, key, value) in plan {
                    std::thread::yield_now();
                    if write {
                        t.writes.insert(key, value);
                        write!(seen, "[:w {key} {value}] ").unwrap();
                    } else {
                        let found = engine.lock().unwrap().read(&t, key);
                        write!(seen, "[:r {key} {}] ", found.map_or("nil".into(), |v| v.to_string())).unwrap();
                    }
                }
                let done = engine.lock().unwrap().commit(t, checks);
                log(&file, if done { "ok" } else { "fail" }, process, if done { &seen } else { &asked });
            }
        })
    }).collect();
    for one in threads { one.join().unwrap(); }
}
