module kiln/gobench

go 1.19
