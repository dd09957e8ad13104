module kiln/work

go 1.19
