package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the ID of the user and of the group with which images run.
const nobody = 65532

// image is a program for several processors, with certificates and nothing else.
type image struct {
	programs map[platform][]byte
	// program is the path of the program in the image.
	program string
	config  v1.Config
	folders []entry
	about   string
}

// runner is the image of the program platform. It keeps its files in /data.
func (r release) runner(programs map[platform][]byte) image {
	return image{
		programs: programs, program: "platform", about: "The management API in one process, for trying it and for tests",
		config: v1.Config{
			User: "65532:65532", Entrypoint: []string{"/platform"}, Cmd: []string{"serve", "--listen=0.0.0.0:8443"}, WorkingDir: "/data",
			ExposedPorts: map[string]struct{}{"8443/tcp": {}},
		},
		folders: []entry{{path: "data/", mode: 0o700, owner: nobody}},
	}
}

// functions is the image that infra/framework/Dockerfile describes. FUNCTION_TARGET names the function that it serves.
func (r release) functions(servers map[platform][]byte) image {
	return image{
		programs: servers, program: "server", about: "The functions of the management API, for Cloud Run and Knative",
		config: v1.Config{User: "65532:65532", Entrypoint: []string{"/server"}},
	}
}

// pack writes an image for all processors as an OCI layout in a tar file, which tools read as oci-archive.
func (r release) pack(folder, name string, i image, notices []byte) ([]byte, error) {
	labels := map[string]string{
		"org.opencontainers.image.title": name, "org.opencontainers.image.description": i.about, "org.opencontainers.image.version": r.version,
		"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0",
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, processor := range []string{"amd64", "arm64"} {
		program := i.programs[platform{"linux", processor}]
		if program == nil {
			continue
		}
		ociImage, err := r.imageFor(i, processor, program, notices, labels)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: ociImage, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: processor}}})
	}
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return nil, err
	}
	// Tools that load the file know the image by this name.
	if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})); err != nil {
		return nil, err
	}
	entries, err := entriesOf(os.DirFS(folder), "")
	if err != nil {
		return nil, err
	}
	return tarOf(entries, r.time)
}

// imageFor returns the image for a processor: a layer with all files.
func (r release) imageFor(i image, processor string, program, notices []byte, labels map[string]string) (v1.Image, error) {
	content, err := tarOf(append([]entry{
		{path: i.program, text: program, mode: 0o755},
		{path: "etc/ssl/certs/ca-certificates.crt", text: roots(), mode: 0o644},
		{path: "licenses/THIRD-PARTY-NOTICES.txt", text: notices, mode: 0o644},
		{path: "tmp/", mode: 0o1777},
	}, i.folders...), r.time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
	if err != nil {
		return nil, err
	}
	ociImage, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "infra/release"}, MediaType: types.OCILayer,
	})
	if err != nil {
		return nil, err
	}
	file, err := ociImage.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = "linux", processor, v1.Time{Time: r.time}, i.config
	file.Config.Labels = labels
	return mutate.ConfigFile(ociImage, file)
}

// roots returns the certificate authorities that Mozilla trusts without conditions. A file of certificates cannot state
// conditions, so an authority that is being phased out is left out.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}
