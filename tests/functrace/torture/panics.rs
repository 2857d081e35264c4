// SPDX-License-Identifier: MIT
// panics.rs: panics that are caught, in loops and in threads, destructors on their way, and what else a Rust program does.
// Called as the others here: see torture.h.
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::panic;
use std::sync::mpsc;
use std::thread;

fn mix(digest: u64, value: u64) -> u64 {
    let mixed = (digest ^ value).wrapping_mul(0x9e3779b97f4a7c15);
    mixed ^ mixed >> 29
}

struct Guard<'a>(&'a mut u64);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.0 = mix(*self.0, 17);
    }
}

#[inline(never)]
fn panic_deep(depth: u32, number: u64, digest: &mut u64) {
    let guard = Guard(digest);
    if depth == 0 {
        panic::resume_unwind(Box::new(number));
    }
    panic_deep(depth - 1, number, guard.0);
}

fn catch_many(count: u64) -> u64 {
    let mut digest = 0;
    for i in 0..count {
        let mut own = 0;
        let result = panic::catch_unwind(panic::AssertUnwindSafe(|| panic_deep((i % 40) as u32, i, &mut own)));
        let number = *result.unwrap_err().downcast::<u64>().unwrap();
        digest = mix(mix(digest, own), number);
    }
    digest
}

fn caught(scale: u64) -> u64 {
    catch_many(2000 * scale)
}

fn in_threads(scale: u64) -> u64 {
    let threads: Vec<_> = (0..8).map(|n| thread::spawn(move || catch_many(200 * scale + n))).collect();
    threads.into_iter().fold(0, |digest, thread| mix(digest, thread.join().unwrap()))
}

fn panicked_threads(_scale: u64) -> u64 {
    (0..100).fold(0, |digest, n| {
        let thread = thread::spawn(move || {
            let mut own = 0;
            panic_deep(10, n, &mut own);
        });
        mix(digest, *thread.join().unwrap_err().downcast::<u64>().unwrap())
    })
}

fn words(_scale: u64) -> u64 {
    let mut counts = BTreeMap::new();
    for i in 0..20000u64 {
        *counts.entry(format!("word{}", mix(i, 3) % 500)).or_insert(0u64) += i;
    }
    counts.iter().fold(0, |digest, (word, count)| mix(digest, word.len() as u64 + count))
}

fn channels(_scale: u64) -> u64 {
    let (to, from) = mpsc::channel();
    let threads: Vec<_> = (0..4u64)
        .map(|n| {
            let to = to.clone();
            thread::spawn(move || (0..500).for_each(|i| to.send(mix(n, i)).unwrap()))
        })
        .collect();
    drop(to);
    let sum = from.iter().fold(0u64, |sum, value| sum.wrapping_add(value));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    sum
}

type Case = (&'static str, fn(u64) -> u64);
const CASES: [Case; 5] = [
    ("caught", caught),
    ("in_threads", in_threads),
    ("panicked_threads", panicked_threads),
    ("words", words),
    ("channels", channels),
];

fn until(cases: &[Case]) -> i32 {
    let first: Vec<u64> = cases.iter().map(|case| case.1(1)).collect();
    println!("ready");
    std::io::stdout().flush().unwrap();
    let input = thread::spawn(|| std::io::stdin().read(&mut [0u8; 1]));
    while !input.is_finished() {
        for (case, digest) in cases.iter().zip(&first) {
            if case.1(1) != *digest {
                eprintln!("wrong: {} came out otherwise", case.0);
                return 1;
            }
        }
    }
    0
}

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let (mut scale, mut forever) = (1, false);
    while !words.is_empty() && words[0].starts_with('-') {
        if words.remove(0) == "--until" {
            forever = true;
        } else {
            scale = words.remove(0).parse().unwrap();
        }
    }
    let cases: Vec<Case> =
        CASES.iter().filter(|case| words.is_empty() || words.iter().any(|word| word == case.0)).copied().collect();
    if forever {
        std::process::exit(until(&cases));
    }
    for case in cases {
        println!("{} {:016x}", case.0, case.1(scale));
    }
}
