// SPDX-License-Identifier: Apache-2.0
// Generics, closures, iterators that melt into one loop, traits, a panic that is cold.
use std::collections::BTreeMap;

mod cages {
    pub trait Animal {
        fn eat(&self, meat: u64) -> u64;
    }

    pub struct Lion(pub u64);
    pub struct Bear {
        pub honey: Vec<u64>,
    }

    #[inline(always)]
    pub fn stir(x: u64) -> u64 {
        (x ^ (x >> 13)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[inline]
    pub fn fold<T: Into<u64> + Copy>(all: &[T]) -> u64 {
        all.iter().map(|&x| stir(x.into())).fold(0, |sum, x| sum.wrapping_add(x))
    }

    impl Animal for Lion {
        #[inline(never)]
        fn eat(&self, meat: u64) -> u64 {
            (0..meat % 19).filter(|x| x % 3 != 0).map(|x| stir(x + self.0)).max().unwrap_or(1)
        }
    }

    impl Animal for Bear {
        #[inline(never)]
        fn eat(&self, meat: u64) -> u64 {
            if self.honey.len() as u64 > meat + 1_000_000 {
                panic!("{} is too much honey", self.honey.len());
            }
            fold(&self.honey) ^ fold(&[meat as u32, 7])
        }
    }
}

use cages::{Animal, Bear, Lion};

#[inline(never)]
fn sorted(mut numbers: Vec<u64>) -> u64 {
    let mut names = BTreeMap::new();

    numbers.sort_by_key(|&x| cages::stir(x));
    for n in &numbers {
        *names.entry(n % 11).or_insert(0u64) += n;
    }
    names.values().copied().fold(0, u64::wrapping_add)
}

fn main() {
    let animals: Vec<Box<dyn Animal>> = vec![Box::new(Lion(3)), Box::new(Bear { honey: (0..40).collect() })];
    let mut sum = std::env::args().count() as u64;

    for i in 0..300 {
        sum = sum.wrapping_add(animals.iter().map(|a| a.eat(i)).fold(0, u64::wrapping_add));
        sum = sum.wrapping_add(sorted(vec![i, sum, i ^ sum, 7]));
    }
    println!("{}", sum != 0);
}
