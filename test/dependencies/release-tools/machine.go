package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// machineOf returns the architecture of an image's Node.js, which must be that of all libraries that
// it links to and of the program that loads them.
func machineOf(image v1.Image) (elf.Machine, error) {
	extracted := mutate.Extract(image)
	defer extracted.Close()
	binaries := map[string]*elf.File{}
	for files := tar.NewReader(extracted); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		path := "/" + strings.TrimPrefix(header.Name, "/")
		if path != "/nodejs/bin/node" && !strings.Contains(path, ".so") {
			continue
		}
		contents, err := io.ReadAll(files)
		if err != nil {
			return 0, err
		}
		binary, err := elf.NewFile(bytes.NewReader(contents))
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		binaries[path] = binary
	}
	node := binaries["/nodejs/bin/node"]
	if node == nil {
		return 0, errors.New("no /nodejs/bin/node")
	}
	wanted, err := node.ImportedLibraries()
	if err != nil {
		return 0, err
	}
	interpreter := node.Section(".interp")
	if interpreter == nil {
		return 0, errors.New("no interpreter")
	}
	loader, err := interpreter.Data()
	if err != nil {
		return 0, err
	}
	for _, library := range append(wanted, strings.TrimRight(string(loader), "\x00")) {
		found := false
		for path, binary := range binaries {
			if path == library || (strings.HasSuffix(path, "/"+library) && strings.HasPrefix(path, "/lib")) {
				found = found || binary.Machine == node.Machine
			}
		}
		if !found {
			return 0, fmt.Errorf("%s is missing", library)
		}
	}
	return node.Machine, nil
}
