module kiln/pprof-go

go 1.22

require (
	github.com/google/pprof v0.0.0-20250208200701-d0013a598941
	kiln/gobench v0.0.0
)

replace kiln/gobench => ../gobench
