/* flags: -fno-plt */
/* SPDX-License-Identifier: Apache-2.0 */
/* The same by calls through slots. */
#include "tails.cpp"
