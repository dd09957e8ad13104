// SPDX-License-Identifier: Apache-2.0

//go:build withc

package main

// int c_answer(void) { return 42; }
import "C"

var fromC = C.c_answer()
