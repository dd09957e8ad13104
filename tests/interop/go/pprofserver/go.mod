module pprofserver

go 1.19
