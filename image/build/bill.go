package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// The bill of materials is SPDX 2.3 (spdx.github.io/spdx-spec/v2.3) as JSON: Debian's packages as the lock has them, and the modules
// that the box's own program was built of, as the program itself tells.
type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	License       string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name             string          `json:"name"`
	ID               string          `json:"SPDXID"`
	Version          string          `json:"versionInfo"`
	Supplier         string          `json:"supplier,omitempty"`
	DownloadLocation string          `json:"downloadLocation"`
	FilesAnalyzed    bool            `json:"filesAnalyzed"`
	Homepage         string          `json:"homepage,omitempty"`
	Checksums        []spdxChecksum  `json:"checksums,omitempty"`
	References       []spdxReference `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	From string `json:"spdxElementId"`
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// bill returns the bill of materials. It is the same for the same image.
func (b *build) bill() (string, error) {
	const document, image = "SPDXRef-DOCUMENT", "SPDXRef-image"
	d := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: document, Name: name,
		Namespace: "urn:assent:image:" + b.roothash,
		Creation:  spdxCreation{time.Unix(epoch, 0).UTC().Format(time.RFC3339), []string{"Tool: assent image/build"}},
		Packages: []spdxPackage{{
			Name: name, ID: image, Version: b.roothash[:16], DownloadLocation: "NOASSERTION",
		}},
		Relationships: []spdxRelationship{{document, "DESCRIBES", image}},
	}
	add := func(p spdxPackage) {
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, spdxRelationship{image, "CONTAINS", p.ID})
	}
	for i, c := range b.packages {
		add(spdxPackage{
			Name: c.Name, ID: identifier("deb", c.Name), Version: c.Version, Supplier: "Organization: " + c.Maintainer,
			DownloadLocation: "NOASSERTION", Homepage: c.Homepage,
			Checksums:  []spdxChecksum{{"SHA256", fmt.Sprintf("%x", b.lock[i].Sum)}},
			References: []spdxReference{{"PACKAGE-MANAGER", "purl", fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=%s", c.Name, c.Version, c.Architecture, suite)}},
		})
	}
	info, err := buildinfo.ReadFile(b.path("root", "usr/bin/assentd"))
	if err != nil {
		return "", err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(spdxPackage{
			Name: m.Path, ID: identifier("go", m.Path), Version: m.Version, DownloadLocation: "NOASSERTION",
			References: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}},
		})
	}
	add(spdxPackage{Name: "go", ID: "SPDXRef-go-toolchain", Version: info.GoVersion, DownloadLocation: "NOASSERTION"})
	text, err := json.MarshalIndent(d, "", "  ")
	return string(text) + "\n", err
}

// identifier is a name with which SPDX can refer to something: letters, digits, dots and dashes.
func identifier(kind, name string) string {
	return "SPDXRef-" + kind + "-" + regexp.MustCompile(`[^A-Za-z0-9.]+`).ReplaceAllString(name, "-")
}
