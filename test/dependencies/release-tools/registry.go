package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// refName is the annotation with the tag of an artefact in a layout.
const refName = "org.opencontainers.image.ref.name"

// serve starts an empty registry, and returns its address.
func serve() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	go func() { log.Fatal(http.Serve(listener, handler)) }()
	return listener.Addr().String(), nil
}

// push copies a layout to a repository, and returns the tags of its artefacts.
func push(path string, repository name.Repository) ([]string, error) {
	index, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	tags := []string{}
	for _, descriptor := range manifest.Manifests {
		tag := descriptor.Annotations[refName]
		if !strings.HasPrefix(tag, "sha256-") {
			tags = append(tags, tag)
		}
		if descriptor.MediaType.IsIndex() {
			image, err := index.ImageIndex(descriptor.Digest)
			if err != nil {
				return nil, err
			}
			if err := remote.WriteIndex(repository.Tag(tag), image); err != nil {
				return nil, err
			}
			continue
		}
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			return nil, err
		}
		if err := remote.Write(repository.Tag(tag), image); err != nil {
			return nil, err
		}
	}
	return tags, nil
}
