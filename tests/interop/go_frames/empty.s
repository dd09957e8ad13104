// SPDX-License-Identifier: Apache-2.0
// Go files with functions that have no body want one of assembly beside them.
