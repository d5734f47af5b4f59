package audit

import (
	"embed"
	"io/fs"
)

//go:embed FORMAT.md audit.cddl
var documents embed.FS

// Documents holds FORMAT.md and audit.cddl, so that every copy of a log carries its own description.
func Documents() fs.FS { return documents }
