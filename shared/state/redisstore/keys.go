package redisstore

// prefix is the version of the layout. A layout that older builds cannot read gets a new prefix.
const prefix = "p1"

// keys are the Redis keys of one resource. They share a hash tag, so that a cluster keeps them in one
// slot and a script may use them together. This file is the only place where keys are made.
// Source: ADR-0002.
type keys struct {
	// revision is a counter: the resource's revision.
	revision string
	// objects is a HASH: name -> record.
	objects string
	// names is a ZSET of names, all with score 0: the order of a list.
	names string
	// owners is a ZSET of owner NUL name, all with score 0: the order of a list by owner.
	owners string
	// digests is a HASH: digest -> name.
	digests string
	// expires is a ZSET of names by Expires in milliseconds.
	expires string
	// created is a ZSET of names by Created in milliseconds.
	created string
	// activity is a HASH: name -> Activity in milliseconds.
	activity string
	// references is a ZSET of uid NUL name, all with score 0: the names of the objects that refer to a uid.
	references string
	// bytes is a HASH: owner -> tally of the bytes of its records, see lua/record.lua. An owner has a tally once an
	// object was written with a quota of bytes.
	bytes string
	// log is a STREAM whose entry ids are <revision>-0.
	log string
	// server is the run id of the server of the last write. Source: ADR-0041.
	server string
}

// keyOf returns the key of a part of a resource or a journal.
func keyOf(name, part string) string { return prefix + ":{" + name + "}:" + part }

// referencesPart is the name of the part with the index of references.
const referencesPart = "references"

func revisionKey(resource string) string { return keyOf(resource, "rev") }
func objectsKey(resource string) string  { return keyOf(resource, "objects") }

func newKeys(resource string) keys {
	key := func(part string) string { return keyOf(resource, part) }
	return keys{
		revision:   revisionKey(resource),
		objects:    objectsKey(resource),
		names:      key("names"),
		owners:     key("owners"),
		digests:    key("digests"),
		expires:    key("expires"),
		created:    key("created"),
		activity:   key("activity"),
		references: key(referencesPart),
		log:        key("log"),
		bytes:      key("bytes"),
		server:     key("server"),
	}
}

// all returns the keys that every write declares, in the order in which lua/record.lua names them.
func (k keys) all() []string {
	return []string{
		k.revision, k.objects, k.names, k.owners, k.digests, k.expires, k.created, k.activity, k.references, k.log,
		k.bytes, k.server,
	}
}

// journalKeys are the Redis keys of one journal. Source: ADR-0016.
type journalKeys struct {
	// events is a STREAM of entries with the one field event; Redis makes their ids, which begin with milliseconds.
	events string
	// notes is a HASH: name -> text.
	notes string
}

func newJournalKeys(name string) journalKeys {
	key := func(part string) string { return keyOf(name, part) }
	return journalKeys{events: key("events"), notes: key("notes")}
}

// validResource reports whether name can stand in a hash tag.
func validResource(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.':
		default:
			return false
		}
	}
	return name != ""
}
