// SPDX-License-Identifier: Apache-2.0
// main <- outer <- by_key (a closure of a sort) or burn_leaf; and threads of std.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

// std::hint has one from 1.66 on; Debian 12 has 1.63.
#[inline(always)]
fn black_box(value: u64) -> u64 {
    unsafe { std::ptr::read_volatile(&value) }
}

#[inline(never)]
fn burn_leaf(turns: u64) -> u64 {
    let mut x = 1u64;
    for i in 0..turns {
        x = black_box(x.wrapping_mul(31).wrapping_add(i));
    }
    x
}

#[inline(never)]
fn sort_by_key(seed: u64) -> u64 {
    let mut values: Vec<u64> = (0..5000).map(|i| (i * 7919 + seed) % 10007).collect();
    values.sort_by_key(|v| black_box(v.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let mut map = BTreeMap::new();
    for v in &values {
        *map.entry(format!("key-{}", v % 997)).or_insert(0u64) += 1;
    }
    black_box(map.len() as u64 + values[0])
}

#[inline(never)]
fn outer(seed: u64) -> u64 {
    let a = burn_leaf(200_000);
    let b = sort_by_key(seed);
    black_box(a.wrapping_add(b))
}

#[inline(never)]
fn run(end: Instant) -> u64 {
    let mut sum = 0u64;
    while Instant::now() < end {
        sum = sum.wrapping_add(outer(sum));
    }
    sum
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let other = std::thread::Builder::new().name("rust-burner".into()).spawn(move || run(end)).unwrap();
    black_box(run(end));
    black_box(other.join().unwrap());
}
