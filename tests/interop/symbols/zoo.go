// SPDX-License-Identifier: Apache-2.0

// Small functions that are inlined into each other, closures, generics, methods of interfaces.
package main

import (
	"fmt"
	"os"
	"sort"
)

type animal interface{ eat(meat uint64) uint64 }

type lion struct{ size uint64 }
type bear struct{ honey []uint64 }

func stir(x uint64) uint64 { return (x ^ x>>13) * 0x9e3779b97f4a7c15 }

func fold(a, b uint64) uint64 {
	mixed := stir(a + 3*b)
	return mixed + stir(b)
}

func total[T uint32 | uint64](all []T) (sum uint64) {
	for _, x := range all {
		sum = fold(sum, uint64(x))
	}
	return sum
}

//go:noinline
func (l lion) eat(meat uint64) uint64 { return fold(l.size, meat) }

//go:noinline
func (b bear) eat(meat uint64) uint64 {
	if uint64(len(b.honey)) > meat+1000000 {
		panic("too much honey")
	}
	return total(b.honey) ^ total([]uint32{uint32(meat), 7})
}

//go:noinline
func sorted(numbers []uint64) uint64 {
	sort.Slice(numbers, func(i, j int) bool { return stir(numbers[i]) < stir(numbers[j]) })
	return numbers[0]
}

func main() {
	animals := []animal{lion{3}, bear{[]uint64{1, 2, 3, 4}}}
	sum := uint64(len(os.Args))
	for i := uint64(0); i < 300; i++ {
		for _, a := range animals {
			sum += a.eat(i)
		}
		sum += sorted([]uint64{i, sum, i ^ sum, 7})
	}
	fmt.Println(sum != 0)
}
